// Exchanges cut a unit into segments: what a rank does without hearing of the
// others. FORWARD, RECOMPUTE, BACKWARD_INPUT and BACKWARD_WEIGHT each do one.
// Segments are counted in forward order, separately in the two directions, as
// an exchange may move nothing in one of them:
//
//   forward    F s0 | exchange | F s1 | exchange | F s2
//   backward   I s1 | exchange, W s1 meanwhile | I s0 | W s0
//
// What an instruction reads and writes follows from the ops of its segment.
#ifndef TROUPE_PROTO_PLAN_SEGMENTS_H_
#define TROUPE_PROTO_PLAN_SEGMENTS_H_

#include <cstdint>
#include <vector>

#include "proto/plan/place_unit.h"
#include "proto/program.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// Ops [begin, end) of a table. The exchange that stands at its far end is part
// of no segment: op `end` forward, op `begin` - 1 backward.
struct Segment {
  int begin = 0;
  int end = 0;
  int exchange = -1;  // done when the segment is; -1: none
};

std::vector<Segment> ForwardSegments(const UnitTable& table);
// Done last to first.
std::vector<Segment> BackwardSegments(const UnitTable& table);
// Of the pass that this kind of instruction is part of.
std::vector<Segment> SegmentsOf(const UnitTable& table, Instruction::Kind kind);

// Where an EXCHANGE op finds what it turns, and where it leaves that.
struct ExchangePlaces {
  TensorPlace from;
  TensorPlace to;
  bool in_place = false;  // the two are one
};
ExchangePlaces PlacesOfExchange(const OpPlaces& op,
                                const Instruction::Exchange& exchange);

// What one segment's pass does with a unit's memories: with all that lies from
// the first byte that it uses to the last.
struct MemoryUse {
  UnitMemory memory = UnitMemory::kNone;
  bool reads = false;
  bool writes = false;
  int64_t begin_bytes = 0;
  int64_t end_bytes = 0;
};
struct SegmentUse {
  std::vector<MemoryUse> memories;  // in the order of UnitMemory, each once
  bool weights = false;             // the unit's own parameters
  bool tied_weights = false;
  bool weight_gradients = false;  // adds to them
  bool tied_gradients = false;
  bool totals = false;
  // Whether there is anything to do at all.
  bool works = false;
};
// `unit` says which parameters are tied. `kind`: FORWARD, BACKWARD_INPUT or
// BACKWARD_WEIGHT, or RECOMPUTE, which has the segments of FORWARD.
SegmentUse UseOf(const Unit& unit, const UnitTable& table,
                 const UnitPlaces& places, Instruction::Kind kind,
                 const Segment& segment);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SEGMENTS_H_
