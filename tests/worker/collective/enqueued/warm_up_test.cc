#include "worker/collective/enqueued/warm_up.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

TEST(WarmUpTest, LeavesTheCommunicatorAsItWas) {
  for (const int ranks : {1, 2, 3, 4, 5}) {
    Together(
        {.backend = "in_process", .ranks = ranks},
        [&](Communicator& communicator) {
          const auto device = NewCpuDevice({.threads = 1});
          const absl::Status status = WarmUp(
              communicator, {.device = *device, .timeout = absl::Seconds(20)});
          EXPECT_TRUE(status.ok()) << status;
          float one = 1;
          EXPECT_TRUE(communicator
                          .AllReduce(CommBuffer::Of(absl::MakeSpan(&one, 1)),
                                     ReduceOp::kSum, {})
                          .ok());
          EXPECT_EQ(one, ranks);
        });
  }
}

// By what each of them sends.
TEST(WarmUpTest, CallsEachCollectiveOnce) {
  constexpr int kRanks = 3;
  std::vector<uint64_t> warm(kRanks);
  Together({.backend = "in_process", .ranks = kRanks},
           [&](Communicator& communicator) {
             const auto device = NewCpuDevice({.threads = 1});
             const absl::Status status =
                 WarmUp(communicator,
                        {.device = *device, .timeout = absl::Seconds(20)});
             EXPECT_TRUE(status.ok()) << status;
             warm[communicator.rank()] = communicator.sent_bytes();
           });
  std::vector<uint64_t> each(kRanks);
  Together({.backend = "in_process", .ranks = kRanks}, [&](Communicator& c) {
    std::vector<float> numbers(kRanks);
    std::vector<float> others(kRanks);
    const auto data = CommBuffer::Of(absl::MakeSpan(numbers));
    const auto other = CommBuffer::Of(absl::MakeSpan(others));
    const CommBuffer own = c.Block(data, c.rank());
    EXPECT_TRUE(c.AllReduce(data, ReduceOp::kSum, {}).ok());
    EXPECT_TRUE(c.ReduceScatter({data, own}, ReduceOp::kSum, {}).ok());
    EXPECT_TRUE(c.AllGather({own, data}, {}).ok());
    EXPECT_TRUE(c.AllToAll({data, other}, {}).ok());
    EXPECT_TRUE(c.Broadcast(data, 0, {}).ok());
    EXPECT_TRUE(c.Reduce(data, 0, ReduceOp::kSum, {}).ok());
    const int after = (c.rank() + 1) % kRanks;
    const int before = (c.rank() + 2) % kRanks;
    for (const auto& [to, from] : {std::pair(after, before), {before, after}}) {
      EXPECT_TRUE(
          c.Shift({data.Slice(0, 1), to, other.Slice(0, 1), from}, {}).ok());
    }
    each[c.rank()] = c.sent_bytes();
  });
  EXPECT_EQ(warm, each);
}

TEST(WarmUpTest, NamesWhoDoesNotCome) {
  absl::Notification over;
  Together({.backend = "in_process", .ranks = 2},
           [&](Communicator& communicator) {
             if (communicator.rank() == 1) {
               over.WaitForNotification();
               return;
             }
             const auto device = NewCpuDevice({.threads = 1});
             const absl::Status status =
                 WarmUp(communicator,
                        {.device = *device, .timeout = absl::Milliseconds(50)});
             EXPECT_EQ(MissingRank(status), 10) << status;
             over.Notify();
           });
}

}  // namespace
}  // namespace troupe
