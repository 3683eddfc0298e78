// All pipeline schedules there are. What a schedule is, says compute_order.h;
// what each is good for, its own header and docs/pipelines.md.
//
// To add one: docs/how_to_add/pipeline.md.
#ifndef TROUPE_SCHEDULER_PIPELINES_PIPELINES_H_
#define TROUPE_SCHEDULER_PIPELINES_PIPELINES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// What a job has that says nothing.
inline constexpr char kDefaultPipeline[] = "1f1b";
// What a refusal of an asynchronous schedule advises.
inline constexpr char kUseSynchronous[] =
    "use a synchronous schedule such as 1f1b";

// One row of the table.
struct Pipeline {
  absl::string_view name;
  absl::string_view summary;
  // InvalidArgument, beginning with the path of the job's field, where the
  // schedule does not exist for this shape.
  absl::StatusOr<ComputeOrder> (*order)(const PipelineShape& shape) = nullptr;
  // Where the job does not say. Stages of a rank that differ: a second copy of
  // the model, as in Chimera, is none.
  int default_virtual_stages = 1;
  // Never drains: ranks work ahead of the optimizer step, with weights of
  // several ages.
  bool asynchronous = false;
  // The schedule is for ranks that start the next optimizer step while others
  // still finish this one; a barrier between steps costs it its advantage.
  bool overlaps_steps = false;
  // Fields of ParallelismSpec that only this schedule has; each is yes or no.
  // The order finds those that are set in PipelineShape.options.
  std::vector<std::string> fields = {};
  // Stages of each rank with which a search tries the schedule (docs/auto.md).
  // None: it does not, as another one takes no longer and needs no more memory,
  // or as it does not train the same.
  std::vector<int> tried_stages = {};
};

// All there are, by name.
const std::vector<Pipeline>& Pipelines();

// InvalidArgument lists the names there are.
absl::StatusOr<Pipeline> FindPipeline(absl::string_view name);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_PIPELINES_H_
