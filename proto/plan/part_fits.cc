#include "proto/plan/part_fits.h"

#include "proto/plan/buffer_kind.h"
#include "proto/plan/operand.h"
#include "proto/plan/ports.h"

namespace troupe {
namespace {

// What a buffer of this part is; what is exchanged is one of several.
bool KindFits(const Instruction& instruction, Instruction::Part part,
              Buffer::Kind kind) {
  switch (part) {
    case Instruction::BATCH:
      return kind == Buffer::BATCH;
    case Instruction::INPUT:
    case Instruction::OUTPUT:
      return kind == Buffer::ACTIVATION;
    case Instruction::SAVED:
      return kind == Buffer::STASH;
    case Instruction::INPUT_GRADIENT:
    case Instruction::OUTPUT_GRADIENT:
      return kind == Buffer::GRADIENT;
    case Instruction::SAVED_GRADIENTS:
      return kind == Buffer::WEIGHT_STASH;
    case Instruction::WEIGHTS:
    case Instruction::TIED_WEIGHTS:
      return kind == Buffer::PARAMETERS || kind == Buffer::UNSHARDED_PARAMETERS;
    case Instruction::OLD_WEIGHTS:
      return kind == Buffer::PARAMETERS;
    case Instruction::WEIGHT_GRADIENTS:
    case Instruction::TIED_GRADIENTS:
      return kind == Buffer::PARAMETER_GRADIENTS ||
             kind == Buffer::UNSHARDED_GRADIENTS;
    case Instruction::SLICE:
      return kind == Buffer::PARAMETERS || kind == Buffer::PARAMETER_GRADIENTS;
    case Instruction::MASTER:
      return kind == Buffer::MASTER_WEIGHTS;
    case Instruction::MOMENTS:
      return kind == Buffer::OPTIMIZER_STATE;
    case Instruction::TOTALS:
      return kind == Buffer::SCALARS;
    case Instruction::SCRATCH:
      return kind == Buffer::WORKSPACE;
    case Instruction::COPY:
      return kind == (instruction.kind() == Instruction::KEEP
                          ? Buffer::STATE_COPY
                          : Buffer::SNAPSHOT_COPY);
    case Instruction::SEGMENT:
      return kind == Buffer::SEGMENT_VALUES;
    case Instruction::SEGMENT_GRADIENT:
      return kind == Buffer::SEGMENT_GRADIENTS;
    case Instruction::RECOMPUTED:
      return kind == Buffer::RECOMPUTED;
    case Instruction::PUSHED:
      return kind == Buffer::PUSHED_GRADIENTS;
    case Instruction::CHANGE:
      return kind == Buffer::OUTER_GRADIENTS;
    case Instruction::FROM:
    case Instruction::TO:
    case Instruction::SIZES:
      if (instruction.kind() == Instruction::MIRROR) {
        return kind == (part == Instruction::FROM ? Buffer::STATE_COPY
                                                  : Buffer::PEER_COPY);
      }
      return IsMove(instruction.kind()) || LineItem(kind) == "activations";
    case Instruction::MOVED:
      return kind ==
             (instruction.gradient() ? Buffer::GRADIENT : Buffer::ACTIVATION);
    default:
      return false;
  }
}

// Of the parts that a unit has several of.
bool IsNumbered(Instruction::Part part) {
  return part == Instruction::INPUT || part == Instruction::OUTPUT ||
         part == Instruction::INPUT_GRADIENT ||
         part == Instruction::OUTPUT_GRADIENT;
}

}  // namespace

bool Fits(const Instruction& instruction, const Instruction::Operand& operand,
          const Buffer& buffer) {
  const int ports = IsNumbered(operand.part()) ? kPortsMax : 1;
  if (operand.port() < 0 || operand.port() >= ports) return false;
  if (operand.part() == Instruction::MOVED &&
      (buffer.unit() != instruction.unit() ||
       buffer.output() != instruction.output() ||
       buffer.micro_batch() != instruction.micro_batch())) {
    return false;
  }
  return KindFits(instruction, operand.part(), buffer.kind());
}

}  // namespace troupe
