#include "scheduler/passes/unit_values.h"

#include "proto/base/check.h"

namespace troupe {

absl::optional<UnitValue> ValueIn(const UnitPort& port, const Edges& edges,
                                  int unit, int micro_batch) {
  const auto of = [micro_batch](Instruction::Part part, Buffer::Kind kind,
                                int u,
                                int output = 0) -> absl::optional<UnitValue> {
    return UnitValue{.part = part, .value = {kind, u, micro_batch, output}};
  };
  const absl::Span<const Edge> read = edges.Into(unit);
  const bool is_read = port.port < static_cast<int>(read.size());
  switch (port.memory) {
    case UnitMemory::kBatch:
      return of(Instruction::BATCH, Buffer::BATCH, kNone);
    case UnitMemory::kInput:
      if (!is_read) return absl::nullopt;
      return of(Instruction::INPUT, Buffer::ACTIVATION, read[port.port].from,
                read[port.port].value);
    case UnitMemory::kOutput:
      return of(Instruction::OUTPUT, Buffer::ACTIVATION, unit, port.port);
    case UnitMemory::kStash:
      return of(Instruction::SAVED, Buffer::STASH, unit);
    case UnitMemory::kWeightStash:
      return of(Instruction::SAVED_GRADIENTS, Buffer::WEIGHT_STASH, unit);
    case UnitMemory::kInputGradient:
      if (!is_read) return absl::nullopt;
      return of(Instruction::INPUT_GRADIENT, Buffer::GRADIENT,
                read[port.port].from, read[port.port].output);
    case UnitMemory::kOutputGradient:
      return of(Instruction::OUTPUT_GRADIENT, Buffer::GRADIENT, unit,
                port.port);
    case UnitMemory::kSegmentValues:
      return of(Instruction::SEGMENT, Buffer::SEGMENT_VALUES, unit);
    case UnitMemory::kSegmentGradients:
      return of(Instruction::SEGMENT_GRADIENT, Buffer::SEGMENT_GRADIENTS, unit);
    case UnitMemory::kRecomputed:
      return of(Instruction::RECOMPUTED, Buffer::RECOMPUTED, unit);
    default:
      CHECK(false) << "a pass of unit " << unit << " uses memory "
                   << static_cast<int>(port.memory);
      return absl::nullopt;
  }
}

}  // namespace troupe
