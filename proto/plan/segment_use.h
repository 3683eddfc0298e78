// What the passes of a unit do with its memories, segment by segment: the bytes
// that each needs from others, and those that it writes.
#ifndef TROUPE_PROTO_PLAN_SEGMENT_USE_H_
#define TROUPE_PROTO_PLAN_SEGMENT_USE_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "proto/plan/place_unit.h"
#include "proto/program.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// What a unit has passes of, in the order in which a step runs them.
inline constexpr std::array<Instruction::Kind, 4> kUnitPasses = {
    Instruction::FORWARD, Instruction::RECOMPUTE, Instruction::BACKWARD_INPUT,
    Instruction::BACKWARD_WEIGHT};

// Of some bytes. What a pass has written before it reads it, it does not need
// from others: it writes it only.
struct MemoryUse {
  UnitMemory memory = UnitMemory::kNone;
  bool reads = false;
  bool writes = false;
  // Whole cache lines, as memory is dealt out by lines; [0, 0): all of it.
  int64_t begin_bytes = 0;
  int64_t end_bytes = 0;
  int port = 0;  // TensorPlace.port
};
struct SegmentUse {
  // In the order of UnitMemory, then of ports, then ascending. Bytes that the
  // unit's passes and exchanges always write together are used together: so
  // there are few ranges, and a reader of one waits for no other writer.
  std::vector<MemoryUse> memories;
  bool weights = false;  // the unit's own parameters
  bool tied_weights = false;
  bool weight_gradients = false;  // adds to them
  bool tied_gradients = false;
  std::vector<Unit::Addend> sums;  // FORWARD: adds to them
  // Whether there is anything to do at all.
  bool works = false;
};

// By segment, of all kUnitPasses. `unit` says which parameters are tied.
std::map<Instruction::Kind, std::vector<SegmentUse>> SegmentUses(
    const Unit& unit, const UnitTable& table, const UnitPlaces& places);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SEGMENT_USE_H_
