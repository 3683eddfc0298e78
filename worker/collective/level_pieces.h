// The blocks of a buffer as steps over levels need them (levels.h): those that
// go to one place of a level side by side, in memory for some of their elements
// at a time.
#ifndef TROUPE_WORKER_COLLECTIVE_LEVEL_PIECES_H_
#define TROUPE_WORKER_COLLECTIVE_LEVEL_PIECES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/plan.pb.h"
#include "worker/collective/blocks.h"

namespace troupe {

// Elements [begin, end) of blocks, at a time as many as those of `blocks`
// blocks that fit the memory (kLevelScratchBytes); at least one.
int64_t ElementsAtATime(int64_t blocks, DType element);

// By member, where its block lies when those that a step keeps together lie
// side by side.
using PackedOrder = std::vector<int64_t>;
// The orders of a way that packs blocks: one for all of its steps, or, of an
// all-to-all, one for each step. None for other ways.
std::vector<PackedOrder> PackedOrdersOf(const Group& group,
                                        const Group::Way& way, int members);

// Block `place` of those, each of `elements` elements.
CommBuffer PackedBlock(const CommBuffer& packed, int64_t place,
                       int64_t elements);

void CopyElements(const CommBuffer& from, const CommBuffer& to);

// Grows as it is needed, and stays.
class PieceMemory {
 public:
  // Up to the next call.
  CommBuffer For(int64_t elements, DType element);

 private:
  std::unique_ptr<char[]> data_;
  size_t bytes_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_LEVEL_PIECES_H_
