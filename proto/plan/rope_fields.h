// The fields of rotary position embeddings: which type of scaling has which,
// their defaults and bounds. rope.h says what they mean.
#ifndef TROUPE_PROTO_PLAN_ROPE_FIELDS_H_
#define TROUPE_PROTO_PLAN_ROPE_FIELDS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Fills rope_theta and the defaults of rope_scaling, where that is there; a
// factor that may be absent is the ratio of max_position_embeddings to the
// original one, at least 1. Leaves alone what CheckRope refuses.
void SetRopeDefaults(ModelSpec& model);

// InvalidArgument, beginning with the field's path ("model.rope_scaling.factor:
// ..."), for a missing field, a number out of range and a field of another
// type. REQUIRES an even head_dim.
absl::Status CheckRope(const ModelSpec& model);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_ROPE_FIELDS_H_
