#include "worker/instructions/recompute.h"

namespace troupe {

absl::Status RunRecompute(const Call& call) {
  UnitOf(call).Recompute(call.state.device, ContextOf(call), BuffersOf(call));
  return absl::OkStatus();
}

}  // namespace troupe
