// The units of a model as ranks run them to continue a text: for one sequence,
// and cut along the axis "tensor" only, as that alone of what cuts a model goes
// with few positions at a time. What decoding does is derived from their tables
// (proto/plan/decoding_table.h).
#ifndef TROUPE_SCHEDULER_PLANNER_DECODING_UNITS_H_
#define TROUPE_SCHEDULER_PLANNER_DECODING_UNITS_H_

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"

namespace troupe {

struct DecodingOptions {
  int tensor = 1;                  // ranks that share units
  ElementType dtype = F32;         // of parameters and activations
  const LoraSpec* lora = nullptr;  // null, or the job's, resolved
};

// REQUIRES a resolved model. InvalidArgument: the model cannot be cut so;
// begins with the path of the field.
absl::StatusOr<UnitList> DecodingUnits(const ModelSpec& model,
                                       const DecodingOptions& options);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_DECODING_UNITS_H_
