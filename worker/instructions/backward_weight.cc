#include "worker/instructions/backward_weight.h"

namespace troupe {

absl::Status RunBackwardWeight(const Call& call) {
  UnitOf(call).BackwardWeight(call.state.device, ContextOf(call),
                              BuffersOf(call));
  return absl::OkStatus();
}

}  // namespace troupe
