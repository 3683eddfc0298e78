#include "worker/instructions/instructions.h"

#include "absl/strings/str_cat.h"
#include "proto/plan/last_step.h"
#include "proto/plan/when.h"
#include "worker/collective/communicator.h"
#include "worker/instructions/admit.h"
#include "worker/instructions/backward_input.h"
#include "worker/instructions/backward_weight.h"
#include "worker/instructions/claim.h"
#include "worker/instructions/deliver.h"
#include "worker/instructions/exchange.h"
#include "worker/instructions/forward.h"
#include "worker/instructions/gather_parameters.h"
#include "worker/instructions/grad_norm.h"
#include "worker/instructions/keep.h"
#include "worker/instructions/load_batch.h"
#include "worker/instructions/mirror.h"
#include "worker/instructions/move.h"
#include "worker/instructions/outer_gradient.h"
#include "worker/instructions/outer_reduce.h"
#include "worker/instructions/outer_step.h"
#include "worker/instructions/pull.h"
#include "worker/instructions/push.h"
#include "worker/instructions/recompute.h"
#include "worker/instructions/recv.h"
#include "worker/instructions/reduce_grads.h"
#include "worker/instructions/reduce_scalars.h"
#include "worker/instructions/scatter_grads.h"
#include "worker/instructions/send.h"
#include "worker/instructions/snapshot.h"
#include "worker/instructions/step.h"

namespace troupe {

const std::vector<InstructionHandler>& InstructionHandlers() {
  static const auto* const handlers = new std::vector<InstructionHandler>{
      {Instruction::LOAD_BATCH, RunLoadBatch},
      {Instruction::FORWARD, RunForward},
      {Instruction::BACKWARD_INPUT, RunBackwardInput},
      {Instruction::BACKWARD_WEIGHT, RunBackwardWeight},
      {Instruction::REDUCE_GRADS, RunReduceGrads},
      {Instruction::GRAD_NORM, RunGradNorm},
      {Instruction::REDUCE_SCALARS, RunReduceScalars},
      {Instruction::STEP, RunStep},
      {Instruction::SNAPSHOT, RunSnapshot},
      {Instruction::SEND, RunSend},
      {Instruction::RECV, RunRecv},
      {Instruction::EXCHANGE, RunExchange},
      {Instruction::SCATTER_GRADS, RunScatterGrads},
      {Instruction::GATHER_PARAMETERS, RunGatherParameters},
      {Instruction::RECOMPUTE, RunRecompute},
      {Instruction::FETCH, RunMove},
      {Instruction::EVICT, RunMove},
      {Instruction::KEEP, RunKeep},
      {Instruction::MIRROR, RunMirror},
      {Instruction::PUSH, RunPush},
      {Instruction::PULL, RunPull},
      {Instruction::CLAIM, RunClaim},
      {Instruction::DELIVER, RunDeliver},
      {Instruction::ADMIT, RunAdmit},
      {Instruction::OUTER_GRADIENT, RunOuterGradient},
      {Instruction::OUTER_REDUCE, RunOuterReduce},
      {Instruction::OUTER_STEP, RunOuterStep},
  };
  return *handlers;
}

absl::Status RunInstruction(const Call& call) {
  if (call.state.skips) return absl::OkStatus();
  const TrainingSpec& training = call.state.plan->job().training();
  if (!RunsIn(call.instruction, StepOf(call), LastStep(training))) {
    return absl::OkStatus();
  }
  for (const InstructionHandler& handler : InstructionHandlers()) {
    if (handler.kind == call.instruction.kind()) return handler.run(call);
  }
  return absl::UnimplementedError(
      absl::StrCat("this worker cannot do ",
                   Instruction::Kind_Name(call.instruction.kind())));
}

absl::Status OutcomeOf(const Call& call, const absl::Status& queue) {
  if (!call.instruction.has_group()) return queue;
  Communicator* const communicator =
      call.state.communicators.at(call.instruction.group()).get();
  return communicator == nullptr ? queue : communicator->Outcome(queue);
}

}  // namespace troupe
