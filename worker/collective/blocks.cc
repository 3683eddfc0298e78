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

std::vector<int64_t> CommBlocks::sizes() const {
  std::vector<int64_t> sizes;
  for (const ElementRange& range : ranges) sizes.push_back(range.size());
  return sizes;
}

ElementRange BlockOf(const RowCut& cut, int member) {
  CHECK(cut.row_elements > 0 && cut.elements % cut.row_elements == 0)
      << cut.elements << " elements are not whole rows of " << cut.row_elements;
  const Range rows = EvenPiece(cut.elements / cut.row_elements,
                               {.index = member, .count = cut.members});
  return {rows.begin * cut.row_elements, rows.end * cut.row_elements};
}

}  // namespace troupe
