#include "worker/collective/nccl/comm.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// A group of one, which NCCL allows.
class NcclCommTest : public testing::Test {
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

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<NcclComm> comm_;
};

TEST(NcclStatusTest, NamesTheCall) {
  EXPECT_TRUE(ToStatus(ncclSuccess, "f").ok());
  EXPECT_TRUE(ToStatus(ncclInProgress, "f").ok());
  const absl::Status ours = ToStatus(ncclInvalidArgument, "ncclSend");
  EXPECT_TRUE(absl::IsInvalidArgument(ours)) << ours;
  EXPECT_EQ(ours.message().substr(0, 10), "ncclSend: ");
  EXPECT_TRUE(absl::IsInternal(ToStatus(ncclSystemError, "f")));
}

TEST_F(NcclCommTest, EnqueuesAndEnds) {
  const absl::StatusOr<void*> memory = device_->Allocate(1024);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const absl::Status enqueued =
      comm_->Enqueue("ncclAllReduce", [&](ncclComm_t comm) {
        return ncclAllReduce(*memory, *memory, 256, ncclFloat32, ncclSum, comm,
                             device_->stream());
      });
  EXPECT_TRUE(enqueued.ok()) << enqueued;
  EXPECT_TRUE(device_->Synchronize().ok());
  EXPECT_TRUE(comm_->AsyncError().ok());
  device_->Free(*memory);
}

TEST_F(NcclCommTest, NothingGoesAfterAnAbort) {
  comm_->Abort();
  comm_->Abort();
  const absl::Status enqueued =
      comm_->Enqueue("ncclAllReduce", [&](ncclComm_t comm) {
        ADD_FAILURE() << "called";
        return ncclSuccess;
      });
  EXPECT_TRUE(absl::IsAborted(enqueued)) << enqueued;
}

}  // namespace
}  // namespace troupe
