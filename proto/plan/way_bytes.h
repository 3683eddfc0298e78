// What the steps of a way (ways.h) move, and into how many pieces: the worker
// cuts by these, and the cost model counts.
//
// All REQUIRE CheckWays of the group with the way.
#ifndef TROUPE_PROTO_PLAN_WAY_BYTES_H_
#define TROUPE_PROTO_PLAN_WAY_BYTES_H_

#include <cstdint>
#include <vector>

#include "proto/plan.pb.h"

namespace troupe {

// Memory that a member takes for the pieces of blocks that are packed, all that
// are under way at once: the blocks are moved in pieces that fit in it.
inline constexpr int64_t kLevelScratchBytes = int64_t{8} << 20;

// Whether the blocks that steps keep together do not lie side by side in the
// buffer, so that they are packed: all exchanges with a block for each member.
bool PacksBlocks(Collective collective);

// What all blocks of a buffer have, each of whole rows, and how many members
// have a row more, the first ones. Steps move what all have; the rows beyond go
// over the flat communicator.
struct BlockExtent {
  int64_t even = 0;  // elements
  int longer = 0;
};
struct BlockRows {
  int64_t elements = 0;
  int64_t row_elements = 1;
};
BlockExtent ExtentOf(const BlockRows& rows, int members);

// Whether levels work at once: each on a piece of its own.
bool Overlaps(const Group::Way& way);
// How many pieces are between the first step and the last at once, at most. A
// piece begins when the one this number of pieces before it has arrived.
int PiecesAtOnce(const Group::Way& way);

struct WayBuffer {
  int64_t elements = 0;
  int element_bytes = 4;
};
// Into how many pieces the buffer is cut, one or more: Way.pieces, or as many
// as have elements. Where blocks are packed, into more if those under way do
// not fit kLevelScratchBytes. Piece p of an all-reduce, a reduce or a broadcast
// is EvenPiece p (proto/plan/layout.h) of the elements; where blocks are
// packed, of what each block has.
int64_t PiecesOf(const Group::Way& way, int members, const WayBuffer& buffer);

// What a step moves.
struct StepBytes {
  // Of the whole buffer of each communicator of the step's level, as that
  // communicator's own exchange of one piece has it: of the largest, where they
  // differ.
  int64_t whole = 0;
  // That all members of the group send together, to the byte, as
  // communicator.h counts: N - 1 times each reduce-scatter, all-gather, reduce
  // and broadcast, twice that an all-reduce, and of an all-to-all each block
  // for another place. At most the largest int64_t. A reduce that a backend
  // takes in blocks sends each block of the sum to the root besides.
  int64_t sent = 0;
};
// By step. Pieces are of whole elements. Where blocks are packed, of what all
// of them have (ExtentOf).
std::vector<StepBytes> BytesOfSteps(const Group& group, const Group::Way& way,
                                    int members, const WayBuffer& buffer);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_WAY_BYTES_H_
