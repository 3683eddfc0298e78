#include "scheduler/planner/planned_way.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "scheduler/planner/check_memory.h"
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

}  // namespace

absl::StatusOr<PlannedWay> PlanWay(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const PlanWayOptions& options) {
  PlannedWay planned = {.job = job};
  if (options.instructions_max.has_value()) {
    ASSIGN_OR_RETURN(planned.short_steps,
                     ShortStepsOf(job, *options.instructions_max));
  }
  if (planned.short_steps.has_value()) {
    planned.job = planned.short_steps->more;
    ASSIGN_OR_RETURN(
        planned.fewer,
        TryPlan(planned.short_steps->fewer, workers, options.gather_room,
                options.may_go_on, options.refused_above));
  }
  ASSIGN_OR_RETURN(planned.plan,
                   TryPlan(planned.job, workers, options.gather_room,
                           options.may_go_on, options.refused_above));
  planned.prediction = planned.plan.prediction();
  if (planned.short_steps.has_value()) {
    planned.prediction =
        PredictionAt(*planned.short_steps, planned.fewer.prediction(),
                     std::move(planned.prediction));
  }
  return planned;
}

void DescribeWay(const PlannedWay& planned,
                 const std::vector<WorkerDescription>& workers,
                 ExplainedWay& way) {
  way.set_fits(CheckMemory(planned.plan, workers).ok());
  SetMemory(planned.prediction, way);
  SetChosenMemory(planned.prediction, way);
  SetTimes(planned.prediction, way);
}

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

}  // namespace troupe
