#include "worker/collective/nccl/comm.h"

#include "gtest/gtest.h"
#include "tests/worker/collective/nccl/group_of_one.h"

namespace troupe {
namespace {

using NcclCommTest = GroupOfOne;

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
