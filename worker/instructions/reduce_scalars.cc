#include "worker/instructions/reduce_scalars.h"

#include "absl/types/span.h"
#include "proto/base/status.h"

namespace troupe {

absl::Status RunReduceScalars(const Call& call) {
  RankState& state = call.state;
  char* memory = NeedOperand(call, Buffer::SCALARS);
  double scalars[kScalarCount];
  state.device.CopyToHost(scalars, memory, sizeof(scalars));
  RETURN_IF_ERROR(state.device.Synchronize());
  if (state.step.stop) scalars[kStopFlag] = 1;
  if (state.step.save) scalars[kSaveFlag] = 1;
  RETURN_IF_ERROR(state.communicators.at(call.instruction.group())
                      ->AllReduce(CommBuffer::Of(absl::MakeSpan(scalars)),
                                  ReduceOp::kSum,
                                  {.name = "loss and gradient norm",
                                   .timeout = state.collective_timeout}));
  state.device.CopyFromHost(memory, scalars, sizeof(scalars));
  return state.device.Synchronize();
}

}  // namespace troupe
