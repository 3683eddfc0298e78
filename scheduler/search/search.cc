#include "scheduler/search/search.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/worker_refusal.h"
#include "scheduler/planner/advise.h"
#include "scheduler/planner/fit_memory.h"
#include "scheduler/planner/planned_way.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/short_steps.h"
#include "scheduler/search/candidates.h"
#include "scheduler/search/estimate.h"
#include "scheduler/search/estimate_errors.h"
#include "scheduler/search/ruled_out.h"
#include "scheduler/search/space.h"

namespace troupe {
namespace {

// What planning takes beside a plan's instructions, in instructions.
constexpr int64_t kPlanOverhead = 2000;
// Of longer plans shorter ones tell.
constexpr int64_t kShort = 12'000;
// Plans for at most this number of workers and of instructions are simulated
// with faster links, too: four times more of what takes longest.
constexpr size_t kFasterLinksMax = 64;
constexpr int64_t kFasterLinksInstructions = 4 * kShort;
constexpr int kFasterLinksWays = 11;  // the choice and the ten next best

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
        errors_(options.error),
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
    double estimated = 0;  // seconds
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
    while (true) {
      const Simulated* const best = Best();
      const absl::optional<Estimated> next = TakeNext(best);
      if (!next.has_value()) return absl::OkStatus();
      const size_t before = simulated_.size();
      RETURN_IF_ERROR(Simulate(JobOf(job_, next->candidate), *next));
      Say(absl::StrCat(candidates_.estimated(), " estimated, ",
                       simulated_.size(), " simulated"));
      if (simulated_.size() == before) continue;
      const ExplainedWay& way = simulated_.back().way;
      errors_.Add(next->family, way.step_seconds() / next->estimate.seconds,
                  static_cast<double>(way.memory_bytes()) /
                      static_cast<double>(next->estimate.bytes));
      if (!way.fits()) AddWithMoreRecomputed(*next);
    }
  }

  // Its bound was too small, and so are those of others that are like it.
  void AddWithMoreRecomputed(const Estimated& lacking) {
    std::vector<Estimated> all = {lacking};
    const Simulated* const best = Best();
    for (const Estimated& one : candidates_.left()) {
      if (MayWin(one, best) && IsLikelyToLack(one)) all.push_back(one);
    }
    for (const Estimated& one : all) {
      if (with_more_.insert(one.key).second) candidates_.EstimateNext(one);
    }
  }

  bool IsLikelyToLack(const Estimated& one) const {
    return static_cast<double>(one.estimate.bytes) *
               errors_.LeastMemory(one.family) >
           static_cast<double>(one.estimate.room);
  }

  // The best that may win, of those for which there is room; of all, if there
  // is none for any.
  absl::optional<Estimated> TakeNext(const Simulated* best) {
    const auto take = [&](bool must_have_room) {
      return candidates_.Take([&](const Estimated& one) {
        const bool is_taken =
            MayWin(one, best) && (!must_have_room || HasRoomFor(one, best));
        return is_taken ? absl::make_optional(ExpectedOf(one)) : absl::nullopt;
      });
    };
    absl::optional<Estimated> next = take(true);
    if (next.has_value()) return next;
    // The first may take more, and so may others while nothing fits.
    const bool may_be_large =
        simulated_.empty() ||
        (best == nullptr && instructions_ < options_.instructions_max);
    return may_be_large ? take(false) : absl::nullopt;
  }

  Candidates::Value ExpectedOf(const Estimated& one) const {
    const double seconds = one.estimate.seconds * errors_.Expected(one.family);
    return {IsLikelyToLack(one),
            objective().ValueOf(one.candidate.parallelism, seconds, one.ranks),
            seconds};
  }

  // By its estimate, less what that may err by.
  bool MayWin(const Estimated& one, const Simulated* best) const {
    if (best == nullptr) return true;
    const double at_best = one.estimate.seconds * errors_.Least(one.family);
    return objective().ValueOf(one.candidate.parallelism, at_best, one.ranks) <=
               best->value &&
           (!objective().fewest() || at_best <= best->way.step_seconds());
  }

  // Among what may be simulated; of twice as much, while nothing fits, and half
  // as much for what is likely not to. A single plan may not take most of it.
  bool HasRoomFor(const Estimated& one, const Simulated* best) const {
    const int64_t takes = InstructionsToCompare(one.estimate.length, kShort);
    const int64_t max = options_.instructions_max;
    const int64_t in_all = best == nullptr       ? 2 * max
                           : IsLikelyToLack(one) ? max / 2
                                                 : max;
    return takes <= 2 * max / 3 && instructions_ + takes <= in_all;
  }

  int64_t NotSimulated() const {
    const Simulated* const best = Best();
    return std::count_if(
        candidates_.left().begin(), candidates_.left().end(),
        [this, best](const Estimated& one) { return MayWin(one, best); });
  }

  absl::Status Simulate(const JobSpec& job, const Estimated& estimated) {
    const std::vector<WorkerDescription>& used = FirstWorkers(estimated.ranks);
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
    one.value = objective().ValueOf(job.parallelism(), one.way.step_seconds(),
                                    one.ranks);
    if (objective().has_prices()) {
      one.way.set_tokens_per_dollar(one.way.tokens_per_second() /
                                    objective().DollarsPerSecond(one.ranks));
    }
    if (!options_.briefly && workers_.size() <= kFasterLinksMax &&
        instructions <= kFasterLinksInstructions && IsAmongBest(one)) {
      SetFasterLinks(*planned, used, one.way);
    }
    simulated_.push_back(std::move(one));
    return absl::OkStatus();
  }

  // Copies of thousands take longer than some plans.
  const std::vector<WorkerDescription>& FirstWorkers(int count) {
    if (count == static_cast<int>(workers_.size())) return workers_;
    if (count != static_cast<int>(first_workers_.size())) {
      first_workers_.assign(workers_.begin(), workers_.begin() + count);
    }
    return first_workers_;
  }

  // Of those so far.
  bool IsAmongBest(const Simulated& one) const {
    const auto before = std::count_if(
        simulated_.begin(), simulated_.end(),
        [&](const Simulated& other) { return Before(other, one); });
    return one.way.fits() && before < kFasterLinksWays;
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
    summary.set_with_strategies(std::count_if(
        simulated_.begin(), simulated_.end(), [](const Simulated& one) {
          return !one.job.parallelism().strategies().empty();
        }));
    summary.set_not_simulated(NotSimulated());
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
  EstimateErrors errors_;
  Candidates candidates_;
  std::vector<Simulated> simulated_;
  std::set<std::string> with_more_;  // keys of what lacks
  std::vector<WorkerDescription> first_workers_;
  int64_t instructions_ = 0;
};

}  // namespace

absl::StatusOr<PlannedWay> PlanToCompare(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on) {
  return PlanWay(job, workers,
                 {.instructions_max = kShort,
                  .refused_above = kInstructionsMax / 2,
                  .may_go_on = may_go_on});
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
