#include "worker/collective/blocks.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/layout.h"

namespace troupe {

int64_t CommBlocks::longest() const {
  int64_t longest = 0;
  for (const ElementRange& range : ranges)
    longest = std::max(longest, range.size());
  return longest;
}

int64_t CommBlocks::ranged() const {
  int64_t sum = 0;
  for (const ElementRange& range : ranges) sum += range.size();
  return sum;
}

std::vector<ElementRange> RangesOfSizes(absl::Span<const int64_t> sizes) {
  std::vector<ElementRange> ranges;
  int64_t end = 0;
  for (const int64_t size : sizes) {
    ranges.push_back({end, end + size});
    end += size;
  }
  return ranges;
}

ElementRange BlockOf(const RowCut& cut, int member) {
  CHECK(cut.row_elements > 0 && cut.elements % cut.row_elements == 0)
      << cut.elements << " elements are not whole rows of " << cut.row_elements;
  const Range rows = EvenPiece(cut.elements / cut.row_elements,
                               {.index = member, .count = cut.members});
  return {rows.begin * cut.row_elements, rows.end * cut.row_elements};
}

}  // namespace troupe
