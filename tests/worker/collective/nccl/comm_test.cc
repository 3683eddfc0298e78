#include "worker/collective/nccl/comm.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
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

// What NCCL is at, one after the other; the last one from then on.
class States {
 public:
  explicit States(std::vector<absl::optional<ncclResult_t>> states)
      : states_(std::move(states)) {}
  absl::optional<ncclResult_t> operator()() const {
    return states_[std::min(asked_++, states_.size() - 1)];
  }
  size_t asked() const { return asked_; }

 private:
  const std::vector<absl::optional<ncclResult_t>> states_;
  mutable size_t asked_ = 0;
};

TEST(AwaitSettledTest, WaitsWhileACallIsInProgress) {
  States states({ncclInProgress, ncclInProgress, ncclSuccess});
  EXPECT_TRUE(AwaitSettled("f", {}, states).ok());
  EXPECT_EQ(states.asked(), 3);
  States failing({ncclInProgress, ncclSystemError});
  const absl::Status failed = AwaitSettled("ncclSend", {}, failing);
  EXPECT_TRUE(absl::IsInternal(failed)) << failed;
  EXPECT_EQ(failed.message().substr(0, 10), "ncclSend: ");
}

// An abort by another thread, between two looks, is no wrong use of ours.
TEST(AwaitSettledTest, SaysThatTheCommunicatorWasAborted) {
  States states({ncclInProgress, absl::nullopt});
  const absl::Status status = AwaitSettled("ncclSend", {}, states);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
}

TEST(AwaitSettledTest, EndsAtTheDeadlineAndWithAJoinThatIsAborted) {
  States states({ncclInProgress});
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      AwaitSettled("f", {.deadline = SteadyNow()}, states)));
  JoinAbort abort;
  abort.Abort(absl::CancelledError("the job was cancelled"));
  EXPECT_TRUE(absl::IsAborted(AwaitSettled("f", {.abort = &abort}, states)));
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
  EXPECT_TRUE(absl::IsAborted(comm_->AsyncError()));
}

}  // namespace
}  // namespace troupe
