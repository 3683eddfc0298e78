#include "worker/collective/gloo/gloo_communicator.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/operation_failure_contract.h"
#include "tests/worker/collective/tells.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(Gloo, CommunicatorContract, EachSizeOf("gloo"),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(Gloo, CommunicatorFailureContract,
                         FailingSizesOf("gloo"), RanksName);
INSTANTIATE_TEST_SUITE_P(Gloo, OperationFailureContract, ThreeOf("gloo"),
                         RanksName);

TEST(GlooCommunicatorTest, RefusesAnAddressThatIsNotHere) {
  InMemoryStore store;
  CommunicatorSeat seat = TestSeat(2, 0, &store);
  seat.host = "192.0.2.1";  // reserved for documentation
  EXPECT_TRUE(Tells(CreateGloo(seat).status(),
                    absl::StatusCode::kInvalidArgument, {"host 192.0.2.1"}));
  seat.host = "";
  seat.interface = "nonexistent0";
  EXPECT_TRUE(Tells(CreateGloo(seat).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"interface nonexistent0"}));
}

TEST(GlooCommunicatorTest, BindsToAnInterface) {
  InMemoryStore store;
  OnThreads(2, [&](int index) {
    CommunicatorSeat seat = TestSeat(2, index, &store);
    seat.interface = "lo";
    auto communicator = CreateGloo(seat);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    EXPECT_TRUE((*communicator)->Barrier({}).ok());
  });
}

// On the watch's thread it must not close connections, which waits for peers.
TEST(GlooCommunicatorTest, AbortOfACallLeavesOneAloneThatHasNone) {
  absl::BlockingCounter ended(1);
  Together({.backend = "gloo", .ranks = 2}, [&](Communicator& communicator) {
    ASSERT_TRUE(communicator.Barrier({}).ok());
    communicator.AbortCall(absl::CancelledError("elsewhere"));
    ASSERT_EQ(communicator.Barrier({}), absl::OkStatus());
    if (communicator.rank() == 1) return ended.Wait();
    std::atomic<bool> over = false;
    std::thread watch([&] {
      while (!over) communicator.AbortCall(absl::CancelledError("elsewhere"));
    });
    const absl::Status status =
        communicator.Barrier({.timeout = absl::Seconds(100)});
    over = true;
    watch.join();
    EXPECT_TRUE(Tells(status, absl::StatusCode::kCancelled, {"elsewhere"}));
    ended.DecrementCount();
  });
}

// Messages of different calls do not meet, so this is a wait, not a wrong sum.
TEST(GlooCommunicatorTest, DifferentOperationsAreToldApart) {
  Together({.backend = "gloo", .ranks = 2}, [](Communicator& communicator) {
    std::vector<float> values(100 + communicator.rank());
    const absl::Status status = communicator.AllReduce(
        CommBuffer::Of(absl::MakeSpan(values)), ReduceOp::kSum,
        {.name = "x", .timeout = absl::Milliseconds(300)});
    EXPECT_TRUE(Tells(status, absl::StatusCode::kDeadlineExceeded,
                      {"all-reduce of x", "another operation"}));
  });
}

// Rank 1 enters late, so that its own time is not up when rank 0 gives up: it
// is told, and both name rank 2.
TEST(GlooCommunicatorTest, ALaterDeadlineDoesNotHideWhoIsMissing) {
  for (const int64_t size : {10, 200'000}) {
    absl::BlockingCounter failed(2);
    Together({.backend = "gloo", .ranks = 3}, [&](Communicator& communicator) {
      ASSERT_TRUE(communicator.Barrier({}).ok());
      if (communicator.rank() == 2) {
        failed.Wait();
        return;
      }
      std::vector<float> values(size);
      const absl::Status status = communicator.AllReduce(
          CommBuffer::Of(absl::MakeSpan(values)), ReduceOp::kSum,
          {.timeout = communicator.rank() == 0 ? absl::Milliseconds(500)
                                               : absl::Seconds(100)});
      EXPECT_TRUE(Tells(status, absl::StatusCode::kDeadlineExceeded,
                        {"rank 13 did not come"}));
      failed.DecrementCount();
    });
  }
}

}  // namespace
}  // namespace troupe
