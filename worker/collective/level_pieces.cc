#include "worker/collective/level_pieces.h"

#include <algorithm>
#include <cstring>

#include "proto/plan/ways.h"

namespace troupe {

BlockExtent ExtentOf(const CommBlocks& blocks) {
  const int64_t rows = blocks.whole.elements / blocks.row_elements;
  const auto members = static_cast<int64_t>(blocks.ranges.size());
  return {.even = rows / members * blocks.row_elements,
          .longer = static_cast<int>(rows % members)};
}

int64_t ElementsAtATime(int64_t blocks, Element element) {
  const auto bytes = static_cast<int64_t>(ElementBytes(element));
  return std::max<int64_t>(1, kLevelScratchBytes / (blocks * bytes));
}

std::vector<int64_t> PackedOrder(
    const Group& group, int members,
    absl::Span<const Group::Step> outermost_first) {
  std::vector<int64_t> order(members);
  for (int member = 0; member < members; ++member) {
    for (const Group::Step& step : outermost_first) {
      const Group::Level& level = group.levels(step.level());
      order[member] = order[member] * level.size() + PlaceOn(level, member);
    }
  }
  return order;
}

CommBuffer PackedBlock(const CommBuffer& packed, int64_t place,
                       int64_t elements) {
  return packed.Slice(place * elements, (place + 1) * elements);
}

void CopyElements(const CommBuffer& from, const CommBuffer& to) {
  if (from.elements > 0) std::memcpy(to.data, from.data, from.bytes());
}

CommBuffer PieceMemory::For(int64_t elements, Element element) {
  const size_t bytes = elements * ElementBytes(element);
  if (bytes > bytes_) {
    data_.reset(new char[bytes]);
    bytes_ = bytes;
  }
  return {data_.get(), elements, element};
}

}  // namespace troupe
