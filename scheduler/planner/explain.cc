#include "scheduler/planner/explain.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/advise.h"
#include "scheduler/planner/check_memory.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/remedies.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/short_steps.h"
#include "scheduler/planner/ways.h"
#include "scheduler/simulate/simulate.h"

namespace troupe {
namespace {

constexpr double kNs = 1e-9;

struct Filled {
  Tier tier = DEVICE;
  int64_t bytes = 0;
  int64_t budget = 0;  // 0: not known
  double part() const {
    return budget > 0 ? static_cast<double>(bytes) / budget : 0;
  }
};

Filled FilledOf(const RankPrediction& rank, Tier tier) {
  Filled filled = {.tier = tier};
  for (const MemoryItem& item : rank.memory()) {
    if (item.tier() == tier) filled.bytes += item.bytes();
  }
  for (const TierBudget& budget : rank.budgets()) {
    if (budget.tier() == tier) filled.budget += budget.bytes();
  }
  return filled;
}

// Of the rank that fills the tier most.
Filled FullestOf(const Prediction& prediction, Tier tier) {
  Filled fullest = {.tier = tier};
  for (const RankPrediction& rank : prediction.ranks()) {
    const Filled filled = FilledOf(rank, tier);
    if (std::make_pair(filled.part(), filled.bytes) >
        std::make_pair(fullest.part(), fullest.bytes)) {
      fullest = filled;
    }
  }
  return fullest;
}

void SetMemory(const Prediction& prediction, ExplainedWay& way) {
  Filled shown = FullestOf(prediction, DEVICE);
  for (const Tier tier : {HOST, NVME}) {
    if (way.fits() || shown.part() > 1) break;
    const Filled filled = FullestOf(prediction, tier);
    if (filled.bytes > 0 && filled.bytes > filled.budget) shown = filled;
  }
  way.set_tier(shown.tier);
  way.set_memory_bytes(shown.bytes);
  way.set_budget_bytes(shown.budget);
}

void SetChosenMemory(const Prediction& prediction, ExplainedWay& way) {
  const std::vector<std::string> parts =
      absl::StrSplit(prediction.chosen_memory(), "; ");
  // Without a reason where all fits.
  if (parts.size() > 1) way.set_chosen_memory(parts.front());
}

void SetTimes(const Prediction& prediction, ExplainedWay& way) {
  double compute = 0;
  double exposed = 0;
  for (const RankPrediction& rank : prediction.ranks()) {
    way.set_bytes_sent_per_step(
        std::max(way.bytes_sent_per_step(), rank.bytes_sent_per_step()));
    compute += rank.compute_seconds();
    exposed += rank.exposed_communication_seconds();
  }
  way.set_step_seconds(prediction.step_seconds());
  way.set_tokens_per_second(prediction.tokens_per_second());
  if (!(prediction.step_seconds() > 0)) return;
  const double all = prediction.ranks_size() * prediction.step_seconds();
  way.set_compute_share(compute / all);
  way.set_exposed_share(exposed / all);
  way.set_waiting_share(1 - way.compute_share() - way.exposed_share());
}

// The links that ranks of these workers have.
struct Links {
  bool within_hosts = false;
  bool between_hosts = false;
};
Links LinksOf(const std::vector<WorkerDescription>& workers) {
  std::set<std::string> hosts;
  for (const WorkerDescription& worker : workers) hosts.insert(worker.host());
  return {.within_hosts = hosts.size() < workers.size(),
          .between_hosts = hosts.size() > 1};
}

// A way's plan; where its own is too long to be compared, those of two shorter
// steps, and what both say of its own.
struct PlannedWay {
  Plan plan;
  JobSpec job;  // that the plan is of
  absl::optional<ShortSteps> short_steps;
  Plan fewer;  // with them: the shorter one
  Prediction prediction;
};

void SetFasterLinks(const PlannedWay& planned,
                    const std::vector<WorkerDescription>& workers,
                    ExplainedWay& way) {
  const auto of_plan = [&](const Plan& plan, const LinkGain& gain) {
    return static_cast<double>(PredictStep(plan, workers, gain).period_ns) *
           kNs;
  };
  const auto seconds = [&](const LinkGain& gain) {
    const double with_more = of_plan(planned.plan, gain);
    if (!planned.short_steps.has_value()) return with_more;
    return planned.short_steps->At(of_plan(planned.fewer, gain), with_more);
  };
  const Links links = LinksOf(workers);
  if (links.within_hosts) {
    way.set_step_seconds_links_within_hosts(seconds({.within_hosts = 2}));
  }
  if (links.between_hosts) {
    way.set_step_seconds_links_between_hosts(seconds({.between_hosts = 2}));
  }
}

// As FindRemedies wants it: what carries groups is chosen there.
Plan WithoutCarriers(Plan plan) {
  for (Group& group : *plan.mutable_groups()) group.clear_carriers();
  return plan;
}

class Explainer {
 public:
  Explainer(const JobSpec& resolved, std::vector<WorkerDescription> workers,
            const MayGoOn& may_go_on, int64_t instructions_max)
      : resolved_(resolved),
        workers_(std::move(workers)),
        may_go_on_(may_go_on),
        instructions_max_(instructions_max) {}

  absl::StatusOr<Explanation> Run(const std::vector<JobSpec>& ways) {
    for (const JobSpec& way : ways) {
      if (static_cast<int>(tried_.size()) == kWaysMax) {
        explanation_.set_left_out(explanation_.left_out() + 1);
        continue;
      }
      RETURN_IF_ERROR(Try(way, &way == &ways.front()));
    }
    if (tried_.empty()) return refusal_of_job_;
    std::stable_sort(tried_.begin(), tried_.end(),
                     [](const Tried& a, const Tried& b) {
                       if (a.way.fits() != b.way.fits()) return a.way.fits();
                       return a.way.step_seconds() < b.way.step_seconds();
                     });
    for (const Tried& tried : tried_) *explanation_.add_ways() = tried.way;
    RETURN_IF_ERROR(Advise());
    return std::move(explanation_);
  }

 private:
  struct Tried {
    ExplainedWay way;
    JobSpec job;
  };

  absl::StatusOr<PlannedWay> PlanWay(const JobSpec& job, bool is_job) const {
    PlannedWay planned = {.job = job};
    if (!is_job) {
      ASSIGN_OR_RETURN(planned.short_steps,
                       ShortStepsOf(job, instructions_max_));
    }
    if (planned.short_steps.has_value()) {
      planned.job = planned.short_steps->more;
      ASSIGN_OR_RETURN(planned.fewer,
                       TryPlan(planned.short_steps->fewer, workers_,
                               GatherRoom::kAll, may_go_on_));
    }
    ASSIGN_OR_RETURN(
        planned.plan,
        TryPlan(planned.job, workers_,
                is_job ? GatherRoom::kFewest : GatherRoom::kAll, may_go_on_));
    planned.prediction = planned.plan.prediction();
    if (planned.short_steps.has_value()) {
      planned.prediction =
          PredictionAt(*planned.short_steps, planned.fewer.prediction(),
                       std::move(planned.prediction));
    }
    return planned;
  }

  absl::Status Try(const JobSpec& job, bool is_job) {
    const absl::StatusOr<PlannedWay> planned = PlanWay(job, is_job);
    if (!planned.ok() && !absl::IsInvalidArgument(planned.status())) {
      return planned.status();
    }
    WayFields fields = FieldsOfWay(planned.ok() ? planned->plan.job()
                                   : is_job     ? resolved_
                                                : job,
                                   resolved_);
    fields.set_is_job(is_job);
    if (!planned.ok()) {
      if (is_job) refusal_of_job_ = planned.status();
      RefusedWay& refused = *explanation_.add_refused();
      *refused.mutable_fields() = std::move(fields);
      refused.set_reason(std::string(planned.status().message()));
      return absl::OkStatus();
    }
    Tried& tried = tried_.emplace_back();
    tried.job = planned->job;
    *tried.way.mutable_fields() = std::move(fields);
    tried.way.set_fits(CheckMemory(planned->plan, workers_).ok());
    SetMemory(planned->prediction, tried.way);
    SetChosenMemory(planned->prediction, tried.way);
    SetTimes(planned->prediction, tried.way);
    RETURN_IF_ERROR(Ask(may_go_on_));
    SetFasterLinks(*planned, workers_, tried.way);
    return absl::OkStatus();
  }

  absl::Status Advise() {
    int asked = 0;
    for (size_t i = 0; i < tried_.size(); ++i) {
      ExplainedWay& way = *explanation_.mutable_ways(static_cast<int>(i));
      if (way.fits()) {
        way.set_advice(AdviceOf(explanation_, static_cast<int>(i)));
        continue;
      }
      const bool asks = asked < kRemediedMax || way.fields().is_job();
      asked += asks;
      if (!asks) {
        way.set_advice(LackText(way));
        continue;
      }
      const absl::StatusOr<Remedies> remedies = RemediesOf(tried_[i].job);
      // The job itself may be too long to be compared with others.
      if (absl::IsInvalidArgument(remedies.status())) {
        way.set_advice(LackText(way));
        continue;
      }
      if (!remedies.ok()) return remedies.status();
      way.set_advice(
          remedies->fitting.empty()
              ? NoRemedyText(way)
              : RemedyText(explanation_, static_cast<int>(i),
                           {.change = remedies->fitting.front().Text(),
                            .longer = remedies->fitting.front().longer}));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Remedies> RemediesOf(const JobSpec& job) const {
    const BuildPlan build = [this](const JobSpec& other) {
      absl::StatusOr<Plan> plan =
          TryPlan(other, workers_, GatherRoom::kAll, may_go_on_);
      return plan.ok() ? WithoutCarriers(*std::move(plan)) : std::move(plan);
    };
    ASSIGN_OR_RETURN(const Plan plan, build(job));
    return FindRemedies(plan, workers_, build,
                        {.may_change =
                             [](const std::string& field) {
                               return field == kRecomputeField ||
                                      field == kZeroField;
                             },
                         .changes_max = 2});
  }

  const JobSpec& resolved_;
  const std::vector<WorkerDescription> workers_;
  const MayGoOn& may_go_on_;
  const int64_t instructions_max_;
  absl::Status refusal_of_job_;
  std::vector<Tried> tried_;
  Explanation explanation_;
};

}  // namespace

absl::StatusOr<Explanation> Explain(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on, int64_t instructions_max) {
  ASSIGN_OR_RETURN(const JobSpec resolved, ResolveJob(job));
  const size_t ranks = RanksNeeded(resolved);
  // Too few are refused with the first way.
  std::vector<WorkerDescription> used(
      workers.begin(), workers.begin() + std::min(ranks, workers.size()));
  return Explainer(resolved, std::move(used), may_go_on, instructions_max)
      .Run(WaysToShare(job));
}

}  // namespace troupe
