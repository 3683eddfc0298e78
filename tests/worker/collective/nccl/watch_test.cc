#include "worker/collective/nccl/watch.h"

#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

class NcclWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Create(0);
    if (!device.ok()) GTEST_SKIP() << "no CUDA device: " << device.status();
    device_ = *std::move(device);
    NcclComm::Place place;
    ASSERT_EQ(ncclGetUniqueId(&place.id), ncclSuccess);
    auto comm =
        NcclComm::Create(*device_, place, absl::Now() + absl::Seconds(60));
    ASSERT_TRUE(comm.ok()) << comm.status();
    comm_ = *std::move(comm);
  }

  // Waits until the watch, or somebody, has aborted the communicator.
  absl::Status Refused() {
    while (comm_->Enqueue("nothing", [](ncclComm_t) { return ncclSuccess; })
               .ok()) {
      std::this_thread::yield();
    }
    return absl::OkStatus();
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<NcclComm> comm_;
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
