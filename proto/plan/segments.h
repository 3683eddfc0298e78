// Exchanges cut a unit into segments: what a rank does without hearing of the
// others. FORWARD, RECOMPUTE, BACKWARD_INPUT and BACKWARD_WEIGHT each do one.
// Segments are counted in forward order, separately in the two directions, as
// an exchange may move nothing in one of them:
//
//   forward    F s0 | exchange | F s1 | exchange | F s2
//   backward   I s1 | exchange, W s1 meanwhile | I s0 | W s0
//
// What an instruction reads and writes follows from the ops of its segment
// (segment_use.h).
#ifndef TROUPE_PROTO_PLAN_SEGMENTS_H_
#define TROUPE_PROTO_PLAN_SEGMENTS_H_

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

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SEGMENTS_H_
