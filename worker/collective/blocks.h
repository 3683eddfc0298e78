// A buffer with one block for each member of a group: how backends see what a
// collective deals out or brings together.
#ifndef TROUPE_WORKER_COLLECTIVE_BLOCKS_H_
#define TROUPE_WORKER_COLLECTIVE_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/collective/comm_buffer.h"

namespace troupe {

// Half open.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// Borrows all that it points to.
struct CommBlocks {
  CommBuffer whole;
  // By member. They tile `whole`, but for an all-to-all, where they lie
  // anywhere in it: what is in none of them is neither read nor written.
  absl::Span<const ElementRange> ranges;
  int64_t row_elements = 1;  // of even blocks: no range cuts a row
  // Of an all-to-all: the blocks of all members are of one size, in the order
  // of the members.
  bool even = false;
  // The caller cut it, into blocks of any sizes.
  bool given = false;
  // Of a call that passes it on.
  absl::Span<const ElementRange> given_ranges() const {
    return given ? ranges : absl::Span<const ElementRange>();
  }

  CommBuffer Of(int member) const {
    return whole.Slice(ranges[member].begin, ranges[member].end);
  }
  int64_t longest() const;  // elements
  int64_t ranged() const;   // elements of all ranges
};

// Ranges of these numbers of elements, one after the other.
std::vector<ElementRange> RangesOfSizes(absl::Span<const int64_t> sizes);

// Cuts elements for members by EvenPiece (proto/plan/layout.h), counted in
// rows. REQUIRES that the elements are whole rows.
struct RowCut {
  int64_t elements = 0;
  int64_t row_elements = 1;
  int members = 1;
};
ElementRange BlockOf(const RowCut& cut, int member);

// The buffer in a block for each member, cut so; `ranges` has room for them.
// REQUIRES the buffer's elements in the cut.
CommBlocks CutEvenly(const CommBuffer& whole, const RowCut& cut,
                     std::vector<ElementRange>& ranges);

// Whether they have a byte in common.
bool Overlap(const CommBuffer& a, const CommBuffer& b);

// CHECKs that the block is `own`, its place in the whole, or that it lies
// elsewhere and is of the same size and type.
void CheckBlock(const CommBuffer& block, const CommBuffer& own,
                const CommBuffer& whole);
// CHECKs that each block lies within the buffer.
void CheckWithin(const CommBuffer& whole,
                 absl::Span<const ElementRange> ranges);
// CHECKs that no two blocks have an element in common.
void CheckApart(absl::Span<const ElementRange> ranges);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_BLOCKS_H_
