// In which order does each rank compute? A pipeline schedule answers that and
// nothing else: a pure function from the pipeline's shape to one list of
// compute steps for each pipeline rank. Authors think in stages;
// scheduler/passes expands a stage into its units and adds transfers,
// collectives, memory and waits.
//
// To add one: docs/how_to_add/pipeline.md.
#ifndef TROUPE_SCHEDULER_PIPELINES_PIPELINES_H_
#define TROUPE_SCHEDULER_PIPELINES_PIPELINES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

struct PipelineShape {
  int ranks = 1;           // pipeline ranks
  int micro_batches = 1;   // that travel through in one step
  int virtual_stages = 1;  // stages of each rank
  int stages() const { return ranks * virtual_stages; }
};

// One piece of computation: a stage on a micro-batch.
struct ComputeStep {
  enum Kind { kForward, kBackwardInput, kBackwardWeight };
  Kind kind = kForward;
  int stage = 0;
  int micro_batch = 0;
  bool operator==(const ComputeStep&) const = default;
};

// For each pipeline rank, what it computes, in order. A backward-input step
// directly followed by the backward-weight step of the same stage and
// micro-batch means one fused backward pass.
using ComputeOrder = std::vector<std::vector<ComputeStep>>;

// One row of the table.
struct Pipeline {
  absl::string_view name;
  absl::string_view summary;
  // InvalidArgument where the schedule does not exist for this shape.
  absl::StatusOr<ComputeOrder> (*order)(const PipelineShape& shape);
};

// All there are, by name.
const std::vector<Pipeline>& Pipelines();

// InvalidArgument lists the names there are.
absl::StatusOr<Pipeline> FindPipeline(absl::string_view name);

// "F0m0 I0m0 W0m0": stage and micro-batch of each step; one line a rank.
std::string ComputeOrderText(const ComputeOrder& order);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_PIPELINES_H_
