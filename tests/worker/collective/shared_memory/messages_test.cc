#include "worker/collective/shared_memory/messages.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/collective/shared_memory/on_segment.h"

namespace troupe {
namespace {

TEST(SharedMessages, ArriveWholeAndInOrder) {
  OnSegment(2, [](Phases& phases) {
    for (const int64_t size : {1, 1000, 100'000, 3'000'000, 1}) {
      std::vector<int32_t> sent(size), received(size);
      std::iota(sent.begin(), sent.end(), static_cast<int32_t>(size));
      ASSERT_TRUE(phases.Begin(absl::InfiniteFuture(), 0).ok());
      if (phases.rank() == 0) {
        ASSERT_TRUE(
            SharedSend(phases, CommBuffer::Of(absl::MakeSpan(sent)), 1).ok());
      } else {
        ASSERT_TRUE(
            SharedRecv(phases, CommBuffer::Of(absl::MakeSpan(received)), 0)
                .ok());
        ASSERT_EQ(received, sent);
      }
    }
  });
}

TEST(SharedMessages, SayThatAMessageHasAnotherSize) {
  OnSegment(2, [](Phases& phases) {
    std::vector<char> bytes(10 + phases.rank());
    const CommBuffer data = CommBuffer::Of(absl::MakeSpan(bytes));
    ASSERT_TRUE(phases.Begin(absl::InfiniteFuture(), 0).ok());
    if (phases.rank() == 0) {
      EXPECT_TRUE(SharedSend(phases, data, 1).ok());
      return;
    }
    EXPECT_EQ(SharedRecv(phases, data, 0).message(),
              "sent 10 bytes, where 11 were expected");
    EXPECT_EQ(phases.verdict().code, absl::StatusCode::kInternal);
    EXPECT_EQ(phases.verdict().peer, 0);
  });
}

}  // namespace
}  // namespace troupe
