#include "worker/collective/shared_memory/shared_memory_communicator.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "proto/base/steady_time.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/gloo/shared_store.h"
#include "tests/worker/collective/operation_failure_contract.h"
#include "tests/worker/collective/tells.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(SharedMemory, CommunicatorContract,
                         EachSizeOf("shared_memory"), RanksName);
INSTANTIATE_TEST_SUITE_P(SharedMemory, CommunicatorFailureContract,
                         FailingSizesOf("shared_memory"), RanksName);
INSTANTIATE_TEST_SUITE_P(SharedMemory, OperationFailureContract,
                         ThreeOf("shared_memory"), RanksName);

absl::Status AllReduce(Communicator& communicator, absl::Duration timeout) {
  std::vector<float> values(1'000'000, 1.0f);
  return communicator.AllReduce(CommBuffer::Of(absl::MakeSpan(values)),
                                ReduceOp::kSum,
                                {.name = "x", .timeout = timeout});
}

// Rank 2 of three is another process, which reduces as long as the others do,
// until `signal` hits it in the middle.
class OtherProcess {
 public:
  OtherProcess() : child_(fork()) {
    if (child_ != 0) return;
    auto mine = CreateSharedMemory(TestSeat(3, 2, &store_));
    while (mine.ok() && AllReduce(**mine, absl::Seconds(100)).ok()) {
    }
    _exit(0);
  }
  ~OtherProcess() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  // What ranks 0 and 1, threads of this process, get in the end.
  void Meet(int signal, absl::Duration timeout, absl::StatusCode code,
            const std::vector<std::string>& words) {
    OnThreads(2, [&](int index) {
      auto mine = CreateSharedMemory(TestSeat(3, index, &store_));
      ASSERT_TRUE(mine.ok()) << mine.status();
      for (int round = 0; round < 20; ++round) {
        ASSERT_TRUE(AllReduce(**mine, absl::Seconds(100)).ok());
      }
      if (index == 0) kill(child_, signal);
      absl::Status status;
      while (status.ok()) status = AllReduce(**mine, timeout);
      EXPECT_TRUE(Tells(status, code, words));
      EXPECT_EQ(MissingRank(status), GlobalRank(2));
    });
  }

 private:
  SharedStore store_;
  const pid_t child_;
};

TEST(SharedMemoryCommunicatorTest, AKilledPeerIsNamedAtOnce) {
  OtherProcess peer;
  const absl::Time start = SteadyNow();
  peer.Meet(SIGKILL, absl::Seconds(100), absl::StatusCode::kUnavailable,
            {"all-reduce of x", "rank 13 died"});
  EXPECT_LT(SteadyNow() - start, absl::Seconds(50));
}

TEST(SharedMemoryCommunicatorTest, AStoppedPeerIsNamedAtTheDeadline) {
  OtherProcess peer;
  peer.Meet(SIGSTOP, absl::Seconds(1), absl::StatusCode::kDeadlineExceeded,
            {"all-reduce of x", "rank 13 did not come"});
}

TEST(SharedMemoryCommunicatorTest, DifferentOperationsAreToldApart) {
  Together({.backend = "shared_memory", .ranks = 2},
           [](Communicator& communicator) {
             std::vector<float> values(100 + communicator.rank());
             const absl::Status status =
                 communicator.AllReduce(CommBuffer::Of(absl::MakeSpan(values)),
                                        ReduceOp::kSum, {.name = "x"});
             EXPECT_TRUE(Tells(status, absl::StatusCode::kInternal,
                               {"all-reduce of x", "another operation"}));
           });
}

}  // namespace
}  // namespace troupe
