#include "worker/instructions/recompute.h"

#include "proto/base/status.h"

namespace troupe {

absl::Status RunRecompute(const Call& call) {
  ASSIGN_OR_RETURN(const MicroBatchContext context, ContextOf(call));
  UnitOf(call).Recompute(call.state.device, context, BuffersOf(call));
  return absl::OkStatus();
}

}  // namespace troupe
