#include "scheduler/passes/unit_values.h"

#include "proto/base/check.h"

namespace troupe {

absl::optional<UnitValue> ValueIn(UnitMemory memory, int unit,
                                  int micro_batch) {
  const auto of = [micro_batch](Instruction::Part part, Buffer::Kind kind,
                                int u) -> absl::optional<UnitValue> {
    return UnitValue{.part = part, .value = {kind, u, micro_batch}};
  };
  switch (memory) {
    case UnitMemory::kTokens:
    case UnitMemory::kTargets:
      return of(Instruction::BATCH, Buffer::BATCH, kNone);
    case UnitMemory::kInput:
      if (unit == 0) return absl::nullopt;
      return of(Instruction::INPUT, Buffer::ACTIVATION, unit - 1);
    case UnitMemory::kOutput:
      return of(Instruction::OUTPUT, Buffer::ACTIVATION, unit);
    case UnitMemory::kStash:
      return of(Instruction::SAVED, Buffer::STASH, unit);
    case UnitMemory::kWeightStash:
      return of(Instruction::SAVED_GRADIENTS, Buffer::WEIGHT_STASH, unit);
    case UnitMemory::kInputGradient:
      if (unit == 0) return absl::nullopt;
      return of(Instruction::INPUT_GRADIENT, Buffer::GRADIENT, unit - 1);
    case UnitMemory::kOutputGradient:
      return of(Instruction::OUTPUT_GRADIENT, Buffer::GRADIENT, unit);
    case UnitMemory::kSegmentValues:
      return of(Instruction::SEGMENT, Buffer::SEGMENT_VALUES, unit);
    case UnitMemory::kSegmentGradients:
      return of(Instruction::SEGMENT_GRADIENT, Buffer::SEGMENT_GRADIENTS, unit);
    case UnitMemory::kRecomputed:
      return of(Instruction::RECOMPUTED, Buffer::RECOMPUTED, unit);
    default:
      CHECK(false) << "a pass of unit " << unit << " uses memory "
                   << static_cast<int>(memory);
      return absl::nullopt;
  }
}

}  // namespace troupe
