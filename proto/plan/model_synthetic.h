// A model that computes nothing: units that take the time they are given, by
// waiting, and hold and move the bytes they are given. So the schedules of many
// workers can be seen on a machine with few cores. One row of the table in
// model.cc.
//
// Only model.cc includes this; everybody else reads model.h. All units are of
// kind SYNTHETIC, in stages like any other; each has all three passes, the
// first one too, and keeps its own output from its forward to the end of its
// backward pass, so that ranks keep as many activations as the papers on
// schedules say. A unit's parameter is one f32 vector,
// "synthetic.<unit>.weight", whose gradient stays zero.
#ifndef TROUPE_PROTO_PLAN_MODEL_SYNTHETIC_H_
#define TROUPE_PROTO_PLAN_MODEL_SYNTHETIC_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/micro_batch.h"

namespace troupe {

// What waits for a transfer waits for its bytes, so there are some.
inline constexpr int64_t kSyntheticActivationBytesMin = 64;

// The parts of ResolveModel and ModelUnits that are this architecture's own.
absl::Status ResolveSynthetic(ModelSpec& model);
absl::Status CheckSynthetic(const ModelSpec& model);
std::vector<Unit> SyntheticUnits(const ModelSpec& model,
                                 const MicroBatchShape& shape);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MODEL_SYNTHETIC_H_
