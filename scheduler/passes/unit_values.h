// Which values the memories of a unit's passes are.
#ifndef TROUPE_SCHEDULER_PASSES_UNIT_VALUES_H_
#define TROUPE_SCHEDULER_PASSES_UNIT_VALUES_H_

#include "absl/types/optional.h"
#include "proto/plan/edges.h"
#include "proto/plan/place_unit.h"
#include "proto/program.pb.h"
#include "scheduler/passes/named_buffers.h"

namespace troupe {

struct UnitValue {
  Instruction::Part part;  // that it usually has in an instruction
  Value value;
};

// A memory, and which of the unit's inputs or outputs where it has several.
struct UnitPort {
  UnitMemory memory = UnitMemory::kNone;
  int port = 0;
};

// Of a pass of `unit` over a micro-batch; nothing: the unit has no such input.
// CHECKs that the memory outlives an instruction.
absl::optional<UnitValue> ValueIn(const UnitPort& port, const Edges& edges,
                                  int unit, int micro_batch);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_UNIT_VALUES_H_
