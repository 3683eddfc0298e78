#include "worker/instructions/backward_input.h"

#include "proto/base/status.h"

namespace troupe {

absl::Status RunBackwardInput(const Call& call) {
  ASSIGN_OR_RETURN(const MicroBatchContext context, ContextOf(call));
  UnitOf(call).BackwardInput(call.state.device, context, BuffersOf(call));
  return absl::OkStatus();
}

}  // namespace troupe
