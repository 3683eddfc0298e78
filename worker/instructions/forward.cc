#include "worker/instructions/forward.h"

#include "proto/base/status.h"

namespace troupe {

absl::Status RunForward(const Call& call) {
  ASSIGN_OR_RETURN(const MicroBatchContext context, ContextOf(call));
  UnitOf(call).Forward(call.state.device, context, BuffersOf(call));
  return absl::OkStatus();
}

}  // namespace troupe
