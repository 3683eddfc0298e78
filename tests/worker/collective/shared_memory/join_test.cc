#include "worker/collective/shared_memory/join.h"

#include <atomic>

#include "gtest/gtest.h"
#include "tests/worker/collective/ranks.h"
#include "worker/collective/shared_memory/segment_map.h"

namespace troupe {
namespace {

TEST(JoinSegment, AllHaveTheSameMemory) {
  InMemoryStore store;
  std::atomic<int> joined = 0;
  OnThreads(3, [&](int index) {
    auto segment = JoinSegment(TestSeat(3, index, &store));
    ASSERT_TRUE(segment.ok()) << segment.status();
    auto* sum = reinterpret_cast<std::atomic<int>*>(segment->data() +
                                                    SegmentMap::Bytes(3) - 64);
    *sum += 1 << index;
    ++joined;
    while (joined < 3) {
    }
    EXPECT_EQ(sum->load(), 7);
    // Nobody can open it any more.
    EXPECT_FALSE(SharedSegment::Open(segment->address()).ok());
  });
}

// As if rank 0 were in another container.
TEST(JoinSegment, AllSayThatMemoryCannotBeShared) {
  InMemoryStore store;
  ASSERT_TRUE(
      store.Set("test-group/shared_memory/0", "boot elsewhere\n1 2 4096 aa")
          .ok());
  OnThreads(2, [&](int index) {
    const absl::Status status =
        JoinSegment(TestSeat(3, index + 1, &store)).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_NE(status.message().find(
                  "rank 10 cannot share memory with rank 7: its memory domain"),
              std::string::npos)
        << status;
  });
}

}  // namespace
}  // namespace troupe
