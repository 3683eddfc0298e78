#include "scheduler/search/search.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/worker_refusal.h"
#include "scheduler/planner/advise.h"
#include "scheduler/planner/fit_memory.h"
#include "scheduler/planner/planned_way.h"
#include "scheduler/planner/planner.h"
#include "scheduler/search/candidates.h"
#include "scheduler/search/estimate.h"
#include "scheduler/search/ruled_out.h"
#include "scheduler/search/space.h"

namespace troupe {
namespace {

// What planning takes beside a plan's instructions, in instructions.
constexpr int64_t kPlanOverhead = 2000;
// Of plans that are compared: short ones first, and longer ones where these do
// not fill the pipeline.
constexpr int64_t kShort = 12'000;
// Estimates err alike: once so many were simulated, others are taken to err as
// these, and by so much more.
constexpr int kTellError = 8;
constexpr double kErrorMargin = 0.05;
// Plans for so many workers, of so many instructions, are simulated with faster
// links, too: four times more of what takes longest.
constexpr size_t kFasterLinksMax = 64;
constexpr int64_t kFasterLinksInstructions = 4 * kShort;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t InstructionsOf(const Plan& plan) {
  int64_t instructions = 0;
  for (const Role& role : plan.roles()) {
    for (const Program& program : role.programs()) {
      instructions += program.instructions_size();
    }
  }
  return instructions;
}

class Search {
 public:
  Search(const JobSpec& job, const std::vector<WorkerDescription>& workers,
         const SearchOptions& options)
      : job_(job),
        workers_(workers),
        options_(options),
        candidates_(job, workers, options.error, options.may_go_on,
                    options.known != nullptr ? *options.known : known_) {}

  absl::StatusOr<ChosenWays> Run() {
    RETURN_IF_ERROR(objective().Check());
    RETURN_IF_ERROR(candidates_.EstimateAll([this](int ranks) {
      Say(absl::StrCat(ranks, " ranks: ", candidates_.divisions(),
                       " divisions, ", candidates_.estimated(), " estimated"));
    }));
    RETURN_IF_ERROR(SimulateAll());
    if (Best() == nullptr) RETURN_IF_ERROR(TryTiers());
    if (Best() == nullptr) {
      if (options_.briefly) return FieldError("parallelism", "nothing fits");
      return RefusalOf(job_, workers_, candidates_, options_.may_go_on);
    }
    return Choose();
  }

 private:
  struct Simulated {
    JobSpec job;
    int ranks = 1;
    double estimated = 0;
    double value = 0;
    ExplainedWay way;
    std::string key;
  };

  const Objective& objective() const { return candidates_.objective(); }

  void Say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

  // The best that fits; nullptr: none was found.
  const Simulated* Best() const {
    const Simulated* best = nullptr;
    for (const Simulated& one : simulated_) {
      if (one.way.fits() && (best == nullptr || Before(one, *best))) {
        best = &one;
      }
    }
    return best;
  }

  static bool Before(const Simulated& a, const Simulated& b) {
    if (a.way.fits() != b.way.fits()) return a.way.fits();
    const double a_seconds = a.way.step_seconds();
    const double b_seconds = b.way.step_seconds();
    return std::tie(a.value, a_seconds, a.key) <
           std::tie(b.value, b_seconds, b.key);
  }

  // Of a simulated step over its estimate, the least that is expected.
  double LeastRatio() const {
    const double assumed = 1 / (1 + options_.error);
    if (simulated_.size() < kTellError || options_.error == kInfinity) {
      return assumed;
    }
    double least = kInfinity;
    for (const Simulated& one : simulated_) {
      least = std::min(least, one.way.step_seconds() / one.estimated);
    }
    return std::max(assumed, least * (1 - kErrorMargin));
  }

  // What was left out for the sake of an estimate is looked at again, if the
  // plans behind the estimates do not fit or take longer.
  absl::Status SimulateAll() {
    for (bool is_more = true; is_more;) {
      RETURN_IF_ERROR(SimulateBest());
      const Simulated* const best = Best();
      ASSIGN_OR_RETURN(is_more,
                       candidates_.Reconsider(best ? best->value : kInfinity));
    }
    return absl::OkStatus();
  }

  absl::Status SimulateBest() {
    while (!candidates_.empty()) {
      const Estimated next = candidates_.Take();
      if (!MayWin(next)) continue;
      const int times = Best() == nullptr ? 2 : 1;
      if (instructions_ >= times * options_.instructions_max) {
        ++not_simulated_;
        continue;
      }
      const size_t before = simulated_.size();
      RETURN_IF_ERROR(Simulate(JobOf(job_, next.candidate), next));
      Say(absl::StrCat(candidates_.estimated(), " estimated, ",
                       simulated_.size(), " simulated"));
      // Its bound was too small: what is recomputed then comes in its turn.
      const bool lacks =
          simulated_.size() > before && !simulated_.back().way.fits();
      if (lacks) candidates_.EstimateNext(next);
    }
    return absl::OkStatus();
  }

  // By its estimate, less what that may err by.
  bool MayWin(const Estimated& next) const {
    const Simulated* const best = Best();
    if (best == nullptr) return true;
    const double at_best = next.estimate.seconds * LeastRatio();
    return objective().ValueOf(at_best, next.ranks) <= best->value &&
           (!objective().fewest() || at_best <= best->way.step_seconds());
  }

  absl::Status Simulate(const JobSpec& job, const Estimated& estimated) {
    const std::vector<WorkerDescription> used(
        workers_.begin(), workers_.begin() + estimated.ranks);
    absl::StatusOr<PlannedWay> planned =
        PlanToCompare(job, used, options_.may_go_on);
    if (!planned.ok()) {
      if (!absl::IsInvalidArgument(planned.status())) return planned.status();
      candidates_.Refuse(planned.status());
      return absl::OkStatus();
    }
    const int64_t instructions =
        InstructionsOf(planned->plan) + InstructionsOf(planned->fewer);
    instructions_ += instructions + kPlanOverhead;
    Simulated one;
    one.job = job;
    one.ranks = estimated.ranks;
    one.estimated = estimated.estimate.seconds;
    one.key = estimated.key;
    JobSpec shown = planned->plan.job();
    shown.mutable_training()->set_global_batch_size(
        job.training().global_batch_size());
    DescribeWay(*planned, used, one.way);
    *one.way.mutable_fields() = FieldsOfChoice(shown, job_);
    one.way.set_estimated_seconds(one.estimated);
    one.value = objective().ValueOf(one.way.step_seconds(), one.ranks);
    if (objective().has_prices()) {
      one.way.set_tokens_per_dollar(one.way.tokens_per_second() /
                                    objective().DollarsPerSecond(one.ranks));
    }
    if (!options_.briefly && workers_.size() <= kFasterLinksMax &&
        instructions <= kFasterLinksInstructions) {
      SetFasterLinks(*planned, used, one.way);
    }
    simulated_.push_back(std::move(one));
    return absl::OkStatus();
  }

  // Nothing fits on devices alone: what may rest below them, of those that lack
  // least.
  absl::Status TryTiers() {
    if (!LeavesOpen(job_.memory())) return absl::OkStatus();
    for (const Estimated& lacking :
         std::vector<Estimated>(candidates_.nearest())) {
      JobSpec job = JobOf(job_, lacking.candidate);
      *job.mutable_memory() = job_.memory();
      if (!job_.parallelism().has_zero()) {
        job.mutable_parallelism()->clear_zero();
      }
      Estimated of_tiers = lacking;
      of_tiers.ranks = RanksNeeded(job);
      RETURN_IF_ERROR(Simulate(job, of_tiers));
    }
    return absl::OkStatus();
  }

  // --- the answer ----------------------------------------------------------

  absl::StatusOr<ChosenWays> Choose() {
    std::sort(simulated_.begin(), simulated_.end(), Before);
    ChosenWays choice;
    Explanation& explanation = choice.explanation;
    for (const Simulated& one : simulated_) {
      *explanation.add_ways() = one.way;
      if (one.way.fits()) choice.jobs.push_back(one.job);
    }
    for (int i = 0; i < explanation.ways_size(); ++i) {
      ExplainedWay& way = *explanation.mutable_ways(i);
      way.set_advice(way.fits() ? AdviceOf(explanation, i) : LackText(way));
    }
    *explanation.mutable_search() = Summary();
    return choice;
  }

  SearchSummary Summary() const {
    SearchSummary summary;
    summary.set_objective(objective().name());
    summary.set_workers(static_cast<int>(workers_.size()));
    summary.set_candidates(candidates_.divisions());
    summary.set_estimated(candidates_.estimated());
    summary.set_simulated(static_cast<int64_t>(simulated_.size()));
    summary.set_not_simulated(not_simulated_);
    summary.set_error_assumed(options_.error);
    double error = 0;
    for (const Simulated& one : simulated_) {
      const double ratio = one.way.step_seconds() / one.estimated;
      error = std::max({error, ratio - 1, 1 / ratio - 1});
    }
    summary.set_error_max(error);
    AddRuledOut(job_, candidates_, summary);
    if (options_.estimates) {
      summary.mutable_estimates()->Add(candidates_.all().begin(),
                                       candidates_.all().end());
    }
    return summary;
  }

  const JobSpec& job_;
  const std::vector<WorkerDescription>& workers_;
  const SearchOptions& options_;
  KnownCosts known_;  // where the options have none
  Candidates candidates_;
  std::vector<Simulated> simulated_;
  int64_t not_simulated_ = 0;
  int64_t instructions_ = 0;
};

}  // namespace

absl::StatusOr<PlannedWay> PlanToCompare(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on) {
  PlanWayOptions options = {.instructions_max = kShort, .may_go_on = may_go_on};
  absl::StatusOr<PlannedWay> planned = PlanWay(job, workers, options);
  if (planned.ok() || !absl::IsInvalidArgument(planned.status())) {
    return planned;
  }
  // Perhaps as it is too long: then as short as fills the pipeline once.
  options.instructions_max = kInstructionsMax / 2;
  options.fills_min = 1;
  options.gather_room = GatherRoom::kFewest;
  return PlanWay(job, workers, options);
}

absl::StatusOr<ChosenWays> ChooseParallelism(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const SearchOptions& options) {
  RETURN_IF_ERROR(CheckOpenJob(job));
  const int least = RanksAtLeast(job);
  if (static_cast<int>(workers.size()) < least) {
    return ForWorkers(absl::FailedPreconditionError(absl::StrCat(
        "the sizes that parallelism says want ", least, " workers, there are ",
        workers.size(), "; start more workers or leave a size open")));
  }
  return Search(job, workers, options).Run();
}

absl::StatusOr<ChosenWays> ChooseParallelism(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on, const SearchProgress& progress) {
  return ChooseParallelism(job, workers,
                           SearchOptions{.may_go_on = may_go_on,
                                         .progress = progress,
                                         .error = kEstimateError});
}

}  // namespace troupe
