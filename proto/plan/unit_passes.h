// What each unit's passes consist of: their segments, and what these read and
// write. Of units that compute it follows from their ops; a synthetic unit,
// which has none, keeps what it made, not what it read.
#ifndef TROUPE_PROTO_PLAN_UNIT_PASSES_H_
#define TROUPE_PROTO_PLAN_UNIT_PASSES_H_

#include <map>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/segment_use.h"
#include "proto/plan/segments.h"

namespace troupe {

class UnitPasses {
 public:
  struct Pass {
    Segment segment;
    SegmentUse use;
    Work work;
  };

  // Borrows the plan: its units and tables.
  explicit UnitPasses(const Plan& plan);

  // One of kUnitPasses: by segment.
  const std::vector<Pass>& Of(int unit, Instruction::Kind kind) const;
  // What FORWARD of a segment adds to: what its ops do, and, in the last
  // segment that does anything, the unit by itself (Unit.addends).
  std::vector<Unit::Addend> SumsOf(int unit, int segment) const;
  // Whether a unit's BACKWARD_WEIGHT of a segment is the last that its backward
  // passes do.
  bool EndsBackward(int unit, int segment) const;
  // Whether the unit's RECOMPUTE does this exchange once more. REQUIRES one of
  // its ops.
  bool ExchangesAgain(int unit, int op) const {
    return Places(unit).ops[op].again != Again::kNo;
  }
  // Of its op (RoundsOfOps).
  int RoundOf(int unit, int op) const { return TableOf(unit).rounds[op]; }
  // Of a segment of the unit's ops (ChunksOfOps); 0: of none.
  int ChunkOf(int unit, const Segment& segment) const {
    if (segment.begin == segment.end) return 0;
    return TableOf(unit).chunks[segment.begin];
  }
  // REQUIRES a unit with a table.
  const UnitPlaces& Places(int unit) const;

 private:
  struct OfTable {
    UnitPlaces places;
    std::vector<int> rounds;  // by op
    std::vector<int> chunks;  // by op
    std::map<Instruction::Kind, std::vector<Pass>> passes;
  };

  const OfTable& TableOf(int unit) const { return tables_[table_of_[unit]]; }

  std::vector<OfTable> tables_;  // the plan's; behind them synthetic units'
  std::vector<int> table_of_;    // by unit
  std::vector<std::vector<Unit::Addend>> addends_;  // by unit
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_UNIT_PASSES_H_
