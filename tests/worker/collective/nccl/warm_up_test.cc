#include "worker/collective/nccl/warm_up.h"

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
