#include "worker/collective/blocks.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/layout.h"

namespace troupe {
namespace {

const char* Begin(const CommBuffer& buffer) {
  return static_cast<const char*>(buffer.data);
}

}  // namespace

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

CommBlocks CutEvenly(const CommBuffer& whole, const RowCut& cut,
                     std::vector<ElementRange>& ranges) {
  CHECK_EQ(whole.elements, cut.elements);
  ranges.resize(cut.members);
  for (int i = 0; i < cut.members; ++i) ranges[i] = BlockOf(cut, i);
  return {whole, ranges, cut.row_elements};
}

bool Overlap(const CommBuffer& a, const CommBuffer& b) {
  return a.elements > 0 && b.elements > 0 && Begin(a) < Begin(b) + b.bytes() &&
         Begin(b) < Begin(a) + a.bytes();
}

void CheckBlock(const CommBuffer& block, const CommBuffer& own,
                const CommBuffer& whole) {
  CHECK(block.element == whole.element && block.elements == own.elements)
      << "a block of " << block.elements << " " << DTypeName(block.element)
      << ", where one of " << own.elements << " " << DTypeName(whole.element)
      << " is needed";
  CHECK(block.data == own.data || !Overlap(block, whole))
      << "the block overlaps the whole, and is not this rank's block of it";
}

void CheckWithin(const CommBuffer& whole,
                 absl::Span<const ElementRange> ranges) {
  for (const ElementRange& range : ranges) {
    CHECK(0 <= range.begin && range.begin <= range.end &&
          range.end <= whole.elements)
        << "a block of elements [" << range.begin << ", " << range.end
        << ") of " << whole.elements;
  }
}

void CheckApart(absl::Span<const ElementRange> ranges) {
  std::vector<ElementRange> sorted;
  for (const ElementRange& range : ranges) {
    if (range.size() > 0) sorted.push_back(range);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const ElementRange& a, const ElementRange& b) {
              return a.begin < b.begin;
            });
  for (size_t i = 1; i < sorted.size(); ++i) {
    CHECK_LE(sorted[i - 1].end, sorted[i].begin)
        << "blocks that are received overlap";
  }
}

}  // namespace troupe
