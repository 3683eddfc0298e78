// The fields of a job that could be set otherwise so that it needs less memory
// on the same ranks and trains the same model (remedies.h).
#ifndef TROUPE_SCHEDULER_PLANNER_MEMORY_CHANGES_H_
#define TROUPE_SCHEDULER_PLANNER_MEMORY_CHANGES_H_

#include <functional>
#include <string>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

inline constexpr char kRecomputeField[] = "memory.recompute";
inline constexpr char kZeroField[] = "parallelism.zero";
inline constexpr char kChunksField[] = "memory.chunk_megabytes";
inline constexpr char kCopiesField[] = "recovery.copies";

// Those of `memory` but the mode and chunk_megabytes, parallelism.zero and
// recovery.copies.
inline constexpr int kMemoryFields = 8;

// A field set otherwise: "memory.optimizer", "host".
struct FieldChange {
  std::string field;
  std::string value;       // empty: it is left out
  std::string price = "";  // beside time, as people read it; empty: none
};

struct MemoryChange {
  FieldChange named;
  std::function<void(JobSpec& job)> make;
};

// What the job has room for on these workers, each change by itself. REQUIRES a
// resolved job.
std::vector<MemoryChange> MemoryChangesOf(
    const JobSpec& job, const std::vector<WorkerDescription>& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_MEMORY_CHANGES_H_
