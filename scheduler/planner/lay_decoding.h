// How the ranks of a job continue a text with the weights that they have
// (Plan.decoding, data.sample).
#ifndef TROUPE_SCHEDULER_PLANNER_LAY_DECODING_H_
#define TROUPE_SCHEDULER_PLANNER_LAY_DECODING_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// Does nothing for a job without data.sample. REQUIRES units, stages, groups
// and placements, and CheckSample. InvalidArgument "data.sample...": ranks have
// pieces of weights that no text is written with.
absl::Status LayDecoding(Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_LAY_DECODING_H_
