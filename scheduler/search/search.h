// `parallelism: auto`: which plan suits a job on these workers (Alpa, arXiv
// 2201.12023). Four layers, each of which knows only the one below it:
//
//   space     what may be chosen (space.h)
//   estimate  what each choice costs, in closed form (estimate.h)
//   simulate  the best by their estimates are planned and simulated, with few
//             micro-batches where a step has many
//   check     the winner is planned as any job is (planner.h)
//
// A layer hands down every candidate that may still win: one whose estimate,
// less what estimates err by, is below the best step that was simulated. Where
// that would take more than kInstructionsSimulatedMax the search says how many
// it left. Deterministic: equal jobs and workers give equal choices; of equal
// values the shorter step is taken, then the one whose text comes first.
#ifndef TROUPE_SCHEDULER_SEARCH_SEARCH_H_
#define TROUPE_SCHEDULER_SEARCH_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/explanation.pb.h"
#include "proto/job.pb.h"
#include "scheduler/planner/planned_way.h"
#include "scheduler/search/estimate.h"

namespace troupe {

// Of all plans of the candidates that are simulated, in all.
inline constexpr int64_t kInstructionsSimulatedMax = 600'000;

// Hears how far a search has come, as people read it: for each number of ranks
// and each simulation. Empty: nobody hears.
using SearchProgress = std::function<void(const std::string& line)>;

struct SearchOptions {
  const MayGoOn& may_go_on;
  SearchProgress progress = nullptr;
  int64_t instructions_max = kInstructionsSimulatedMax;
  // As if this were the error of estimates; infinite: everything is simulated,
  // as far as the maximum allows it.
  double error;
  // What other searches know already, and this one adds to; null: nothing.
  KnownCosts* known = nullptr;
  bool estimates = false;  // SearchSummary.estimates is wanted
  // One of many that are compared: what faster links would do, or more workers
  // if nothing fits, does not matter.
  bool briefly = false;
};

struct ChosenWays {
  // With what was chosen in place of `auto`: the best first, then the others
  // that were simulated and fit.
  std::vector<JobSpec> jobs;
  // The chosen way first, then the others that were simulated and fit, best
  // first; then those that do not fit.
  Explanation explanation;
};

// workers[r] is to fill rank r; a plan may use fewer. InvalidArgument: the job
// is wrong, or nothing fits: then with what comes nearest, and what would fit.
// FailedPrecondition: fewer workers than the job's own sizes want. And what
// `may_go_on` says.
absl::StatusOr<ChosenWays> ChooseParallelism(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on = {}, const SearchProgress& progress = nullptr);
absl::StatusOr<ChosenWays> ChooseParallelism(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const SearchOptions& options);

// A job's plan as a search simulates it: of a long step two shorter ones tell.
absl::StatusOr<PlannedWay> PlanToCompare(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_SEARCH_H_
