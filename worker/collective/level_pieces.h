// The blocks of a reduce-scatter or an all-gather as steps over levels need
// them (levels.h): those that go to one place of a level side by side, in
// memory for some of their elements at a time.
#ifndef TROUPE_WORKER_COLLECTIVE_LEVEL_PIECES_H_
#define TROUPE_WORKER_COLLECTIVE_LEVEL_PIECES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "proto/plan.pb.h"
#include "worker/collective/blocks.h"

namespace troupe {

// Of the blocks of a buffer what all members have, and how many members have a
// row more, the first ones.
struct BlockExtent {
  int64_t even = 0;  // elements
  int longer = 0;
};
BlockExtent ExtentOf(const CommBlocks& blocks);

// Elements [begin, end) of blocks, so many at a time that those of `blocks`
// blocks fit the memory (kLevelScratchBytes); at least one.
int64_t ElementsAtATime(int64_t blocks, Element element);

// By member, where its block lies when those that a step keeps together lie
// side by side: by its place on the level of the outermost step, then the next.
std::vector<int64_t> PackedOrder(const Group& group, int members,
                                 absl::Span<const Group::Step> outermost_first);

// Block `place` of those, each of so many elements.
CommBuffer PackedBlock(const CommBuffer& packed, int64_t place,
                       int64_t elements);

void CopyElements(const CommBuffer& from, const CommBuffer& to);

// Grows as it is needed, and stays.
class PieceMemory {
 public:
  // Up to the next call.
  CommBuffer For(int64_t elements, Element element);

 private:
  std::unique_ptr<char[]> data_;
  size_t bytes_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_LEVEL_PIECES_H_
