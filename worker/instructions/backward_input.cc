#include "worker/instructions/backward_input.h"

namespace troupe {

absl::Status RunBackwardInput(const Call& call) {
  UnitOf(call).BackwardInput(call.state.device, ContextOf(call),
                             BuffersOf(call));
  return absl::OkStatus();
}

}  // namespace troupe
