// A buffer cut into one block for each member of a group, one after the other:
// how backends see what a collective deals out or brings together.
#ifndef TROUPE_WORKER_COLLECTIVE_BLOCKS_H_
#define TROUPE_WORKER_COLLECTIVE_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/collective/element.h"

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
  absl::Span<const ElementRange> ranges;  // by member; they tile `whole`
  int64_t row_elements = 1;               // of even blocks: no range cuts a row

  CommBuffer Of(int member) const {
    return whole.Slice(ranges[member].begin, ranges[member].end);
  }
  int64_t longest() const;  // elements
  std::vector<int64_t> sizes() const;
};

// Cuts so many elements for so many members by EvenPiece (proto/plan/layout.h),
// counted in rows. REQUIRES that the elements are whole rows.
struct RowCut {
  int64_t elements = 0;
  int64_t row_elements = 1;
  int members = 1;
};
ElementRange BlockOf(const RowCut& cut, int member);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_BLOCKS_H_
