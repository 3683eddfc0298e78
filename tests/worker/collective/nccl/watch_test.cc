#include "worker/collective/nccl/watch.h"

#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/worker/collective/nccl/group_of_one.h"

namespace troupe {
namespace {

class NcclWatchTest : public GroupOfOne {
 protected:
  // Waits until the watch, or somebody, has aborted the communicator.
  absl::Status Refused() {
    while (comm_->Enqueue("nothing", [](ncclComm_t) { return ncclSuccess; })
               .ok()) {
      std::this_thread::yield();
    }
    return absl::OkStatus();
  }
};

TEST_F(NcclWatchTest, LeavesInPeaceWhatEndsInTime) {
  NcclWatch watch(*comm_);
  for (int i = 0; i < 3; ++i) {
    watch.Begin(absl::InfiniteFuture());
    EXPECT_TRUE(watch.End().ok());
  }
}

TEST_F(NcclWatchTest, AbortsAtTheDeadline) {
  NcclWatch watch(*comm_);
  watch.Begin(absl::Now());
  ASSERT_TRUE(Refused().ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(watch.End()));
}

}  // namespace
}  // namespace troupe
