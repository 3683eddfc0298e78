// What lets a job fit that does not, on the same ranks: to make again what
// backward reads, to deal over ranks what they hold alike, to let something
// rest in another tier of memory, to go without copies of the state; and what
// it costs, as predicted. A refusal names it, `memory: auto` takes it
// (fit_memory.h), but for the copies, which are not there for speed.
//
// Each change is compiled and predicted by itself; where none fits, pairs of
// what is made again and of where activations rest, too. What several of them
// save and cost together is guessed: as what was compiled and differs in the
// fewest changes, and what those do (combine_needs.h). Those that fit by that
// guess are compiled too, the cheapest first, until the next would cost a tenth
// of a step more than one that was found to fit; where none fits, a few that
// lack least. At most 32 plans are compiled.
//
// All that is without chunks (memory.chunk_megabytes), which fill a device as
// far as it goes and so hide what is needed. What fits gets them behind that,
// where something of it rests below the device: it fits as well then, and moves
// less.
#ifndef TROUPE_SCHEDULER_PLANNER_REMEDIES_H_
#define TROUPE_SCHEDULER_PLANNER_REMEDIES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/planner/check_memory.h"
#include "scheduler/planner/memory_changes.h"

namespace troupe {

struct Remedy {
  std::vector<FieldChange> changes;
  JobSpec job;        // with them, resolved
  double longer = 0;  // of a step's time, as predicted: 0.1 is 10 % more

  // "memory.recompute: full and memory.optimizer: host (+9 %)".
  std::string Text() const;
  bool HasPrice() const;  // beside time
};

// What of memory.chunk_megabytes what fits gets.
struct Chunks {
  std::string megabytes;  // empty: none
  // Absent: as far as the smallest device goes, which no more would do.
  absl::optional<int64_t> device_bytes;
  bool always = false;  // also where no step is quicker
};

// As the job asks for them. REQUIRES that it does.
Chunks ChunksAsked(const MemorySpec& memory);

struct RemedyOptions {
  std::function<bool(const std::string& field)> may_change;
  int changes_max = 1;
  // Whether more changes are tried though fewer suffice: they may cost less.
  bool goes_on = false;
  Chunks chunks = {};  // where the job does not say
};

struct Remedies {
  // The cheapest first; behind them those with a price beside time.
  std::vector<Remedy> fitting;
  // Of all that were compiled, the one that lacks least memory; no changes
  // where that is the plan as it is.
  Remedy closest;
};

// REQUIRES a plan that does not fit. Errors as those of `build`.
absl::StatusOr<Remedies> FindRemedies(
    const Plan& plan, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build, const RemedyOptions& options);

// With a step's part of the copies of the state.
double PredictedStepSeconds(Plan plan,
                            const std::vector<WorkerDescription>& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_REMEDIES_H_
