// Exchanges cut a unit into segments: what a rank does without hearing of the
// others. FORWARD, RECOMPUTE, BACKWARD_INPUT and BACKWARD_WEIGHT each do one.
// Segments are counted in forward order, separately in the two directions, as
// an exchange may move nothing in one of them:
//
//   forward    F s0 | exchange | F s1 | exchange | F s2
//   backward   I s1 | exchange, W s1 meanwhile | I s0 | W s0
//
// Where other ops stand between an exchange and the op that makes what it
// sends, a segment ends behind the maker, too: so they do not keep it waiting,
// nor does what it brings keep them.
//
// Rows that are done in chunks (Op.chunk) cut it too. The ops of a chunk are
// segments of their own in either direction; in training both run before those
// of the next chunk:
//
//   forward    F s0 | F s1, I s1, W s1 | F s2, I s2, W s2
//   backward   I s0, W s0
//
// What an instruction reads and writes follows from the ops of its segment
// (segment_use.h).
#ifndef TROUPE_PROTO_PLAN_SEGMENTS_H_
#define TROUPE_PROTO_PLAN_SEGMENTS_H_

#include <vector>

#include "proto/program.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// Whether ranks exchange something at this op: no layer does it, it is an
// instruction of its own.
bool IsExchange(Op::Kind kind);
// And whether something moves, forward or backward.
bool Moves(const Op& op, bool backward);

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

// By op, the chunk of rows that it is part of, counted from 1; 0: of none.
std::vector<int> ChunksOfOps(const UnitTable& table);

// By op, a number that ops have in common if they are of one segment. What
// moves is on its own.
std::vector<int> SegmentNumbers(const UnitTable& table, bool backward);

// By op, the round of experts' rows that it is part of (Op.round): of exchanges
// of rows, and of what stands between REGROUP and UNGROUP. 0: the first, or
// none. A segment's ops are of one round.
std::vector<int> RoundsOfOps(const UnitTable& table);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SEGMENTS_H_
