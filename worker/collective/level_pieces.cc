#include "worker/collective/level_pieces.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "proto/plan/way_bytes.h"
#include "proto/plan/ways.h"

namespace troupe {
namespace {

// By the place on the level of the outermost step, then the next.
PackedOrder OrderBy(const Group& group, int members,
                    absl::Span<const Group::Step> outermost_first) {
  PackedOrder order(members);
  for (int member = 0; member < members; ++member) {
    for (const Group::Step& step : outermost_first) {
      const Group::Level& level = group.levels(step.level());
      order[member] = order[member] * level.size() + PlaceOn(level, member);
    }
  }
  return order;
}

}  // namespace

int64_t ElementsAtATime(int64_t blocks, DType element) {
  const auto bytes = static_cast<int64_t>(DTypeBytes(element));
  return std::max<int64_t>(1, kLevelScratchBytes / (blocks * bytes));
}

std::vector<PackedOrder> PackedOrdersOf(const Group& group,
                                        const Group::Way& way, int members) {
  if (!PacksBlocks(way.collective())) return {};
  std::vector<Group::Step> steps(way.steps().begin(), way.steps().end());
  if (way.collective() == ALL_GATHER) std::reverse(steps.begin(), steps.end());
  if (way.collective() != ALL_TO_ALL) {
    return {OrderBy(group, members, steps)};
  }
  std::vector<PackedOrder> orders;
  for (int s = 0; s < way.steps_size(); ++s) {
    orders.push_back(OrderBy(group, members, steps));
    std::rotate(steps.begin(), steps.begin() + 1, steps.end());
  }
  return orders;
}

CommBuffer PackedBlock(const CommBuffer& packed, int64_t place,
                       int64_t elements) {
  return packed.Slice(place * elements, (place + 1) * elements);
}

void CopyElements(const CommBuffer& from, const CommBuffer& to) {
  if (from.elements > 0) std::memcpy(to.data, from.data, from.bytes());
}

CommBuffer PieceMemory::For(int64_t elements, DType element) {
  const size_t bytes = elements * DTypeBytes(element);
  if (bytes > bytes_) {
    data_.reset(new char[bytes]);
    bytes_ = bytes;
  }
  return {data_.get(), elements, element};
}

}  // namespace troupe
