#include "worker/instructions/forward.h"

namespace troupe {

absl::Status RunForward(const Call& call) {
  UnitOf(call).Forward(call.state.device, ContextOf(call), BuffersOf(call));
  return absl::OkStatus();
}

}  // namespace troupe
