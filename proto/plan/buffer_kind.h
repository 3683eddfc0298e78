// What a kind of buffer implies: how long it lives and under which line item of
// the plan's memory it is counted (docs/plan.md, "Slots and memory").
#ifndef TROUPE_PROTO_PLAN_BUFFER_KIND_H_
#define TROUPE_PROTO_PLAN_BUFFER_KIND_H_

#include <string>

#include "proto/cluster.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Resident buffers live as long as the job, each in a slot of its own; the
// others from their first writer to their last user.
inline bool IsResident(Buffer::Kind kind) { return kind >= Buffer::PARAMETERS; }

inline std::string LineItem(Buffer::Kind kind) {
  switch (kind) {
    case Buffer::PARAMETERS:
      return "parameters";
    case Buffer::PARAMETER_GRADIENTS:
      return "gradients";
    case Buffer::MASTER_WEIGHTS:
      return "master_weights";
    case Buffer::OPTIMIZER_STATE:
      return "optimizer_moments";
    case Buffer::ACTIVATION:
    case Buffer::STASH:
    case Buffer::GRADIENT:
    case Buffer::WEIGHT_STASH:
      return "activations";
    case Buffer::SNAPSHOT_COPY:
      return "snapshot";
    default:
      return "buffers";
  }
}

// Where buffers of a kind rest.
inline Tier HomeTier(Buffer::Kind kind) {
  return kind == Buffer::SNAPSHOT_COPY ? HOST : DEVICE;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_BUFFER_KIND_H_
