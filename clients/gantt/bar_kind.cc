#include "clients/gantt/bar_kind.h"

namespace troupe {

BarKind KindOf(Instruction::Kind kind) {
  switch (kind) {
    case Instruction::FORWARD:
      return BarKind::kForward;
    case Instruction::RECOMPUTE:
      return BarKind::kRecompute;
    case Instruction::BACKWARD_INPUT:
      return BarKind::kBackwardInput;
    case Instruction::BACKWARD_WEIGHT:
      return BarKind::kBackwardWeight;
    case Instruction::SEND:
    case Instruction::RECV:
      return BarKind::kTransfer;
    case Instruction::EXCHANGE:
      return BarKind::kExchange;
    case Instruction::REDUCE_GRADS:
    case Instruction::SCATTER_GRADS:
    case Instruction::GATHER_PARAMETERS:
    case Instruction::PUSH:
    case Instruction::PULL:
    case Instruction::CLAIM:
    case Instruction::DELIVER:
    case Instruction::ADMIT:
    case Instruction::REDUCE_SCALARS:
    case Instruction::OUTER_REDUCE:
      return BarKind::kCollective;
    case Instruction::FETCH:
    case Instruction::EVICT:
    case Instruction::KEEP:
    case Instruction::MIRROR:
      return BarKind::kMove;
    case Instruction::GRAD_NORM:
    case Instruction::STEP:
    case Instruction::OUTER_GRADIENT:
    case Instruction::OUTER_STEP:
      return BarKind::kStep;
    case Instruction::LOAD_BATCH:
      return BarKind::kData;
    default:
      return BarKind::kOther;
  }
}

BarName NameOf(BarKind kind) {
  switch (kind) {
    case BarKind::kForward:
      return {"forward", 'F'};
    case BarKind::kRecompute:
      return {"forward, again", 'C'};
    case BarKind::kBackwardInput:
      return {"backward, input", 'I'};
    case BarKind::kBackwardWeight:
      return {"backward, weight", 'W'};
    case BarKind::kTransfer:
      return {"transfer", 'T'};
    case BarKind::kExchange:
      return {"exchange within units", 'X'};
    case BarKind::kCollective:
      return {"collective", 'R'};
    case BarKind::kMove:
      return {"between tiers of memory", 'M'};
    case BarKind::kStep:
      return {"optimizer step", 'O'};
    case BarKind::kData:
      return {"data", 'L'};
    case BarKind::kOther:
      break;
  }
  return {"other", '?'};
}

bool IsPass(BarKind kind) {
  return kind == BarKind::kForward || kind == BarKind::kRecompute ||
         kind == BarKind::kBackwardInput || kind == BarKind::kBackwardWeight;
}

}  // namespace troupe
