#include "worker/collective/in_process/in_process_communicator.h"

#include <memory>

#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/gloo/shared_store.h"
#include "tests/worker/collective/operation_failure_contract.h"
#include "tests/worker/collective/tells.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorContract,
                         EachSizeOf("in_process"), RanksName);
INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorFailureContract,
                         FailingSizesOf("in_process"), RanksName);
INSTANTIATE_TEST_SUITE_P(InProcess, OperationFailureContract,
                         ThreeOf("in_process"), RanksName);

TEST(InProcessCommunicatorTest, RefusesAStoreForProcesses) {
  SharedStore store;
  const absl::Status status = CreateInProcess(TestSeat(2, 1, &store)).status();
  EXPECT_TRUE(Tells(status, absl::StatusCode::kFailedPrecondition,
                    {"threads of one process"}));
}

// What the members share goes with the store, whichever of them came.
TEST(InProcessCommunicatorTest, NothingStaysOfAGroupThatDoesNotMeet) {
  std::weak_ptr<void> board;
  {
    InMemoryStore store;
    CommunicatorSeat seat = TestSeat(2, 0, &store);
    seat.timeout = absl::Milliseconds(1);
    EXPECT_TRUE(absl::IsDeadlineExceeded(CreateInProcess(seat).status()));
    auto shared = store.Share("test-group/in_process", [] {
      ADD_FAILURE() << "rank 0 shared nothing";
      return std::shared_ptr<void>();
    });
    ASSERT_TRUE(shared.ok()) << shared.status();
    board = *shared;
  }
  EXPECT_TRUE(board.expired());
}

}  // namespace
}  // namespace troupe
