#include "worker/collective/shared_memory/segment_map.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

struct Part {
  const void* begin;
  int64_t bytes;
};

// As a segment's memory is aligned, and more so.
struct alignas(64) Line {
  char bytes[64];
};

TEST(SegmentMap, PartsLieApartAndInside) {
  for (const int ranks : {1, 2, 3, 5, 8, 64}) {
    std::vector<Line> lines(SegmentMap::Bytes(ranks) / sizeof(Line) + 1);
    char* const memory = lines.front().bytes;
    const SegmentMap map(memory, ranks);
    std::vector<Part> parts = {{&map.gate(), sizeof(Gate)}};
    for (int rank = 0; rank < ranks; ++rank) {
      parts.push_back({&map.state(rank), sizeof(MemberState)});
      for (const int parity : {0, 1}) {
        parts.push_back({map.in_slot({rank, parity}), map.slot_bytes()});
        parts.push_back({map.out_slot({rank, parity}), map.piece_bytes()});
      }
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == rank) continue;
        parts.push_back({&map.channel({rank, peer}), sizeof(Channel)});
        for (uint32_t i = 0; i < Channel::kSlots; ++i) {
          parts.push_back({map.chunk({rank, peer}, i), map.chunk_bytes()});
        }
      }
    }
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.begin < b.begin; });
    const char* end = memory;
    for (const Part& part : parts) {
      EXPECT_GE(static_cast<const char*>(part.begin), end) << ranks;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(part.begin) % 64, 0u);
      end = static_cast<const char*>(part.begin) + part.bytes;
    }
    EXPECT_EQ(static_cast<size_t>(end - memory), SegmentMap::Bytes(ranks));
  }
}

TEST(SegmentMap, IsBounded) {
  EXPECT_LT(SegmentMap::Bytes(2), size_t{36} << 17);  // 4.5 MiB
  for (int ranks = 1; ranks <= 64; ++ranks) {
    EXPECT_LT(SegmentMap::Bytes(ranks), size_t{18} << 20) << ranks;
  }
}

}  // namespace
}  // namespace troupe
