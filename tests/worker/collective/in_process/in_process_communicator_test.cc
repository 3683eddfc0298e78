#include "worker/collective/in_process/in_process_communicator.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/tells.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorContract,
                         EachSizeOf("in_process"), RanksName);
INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorFailureContract,
                         FailingSizesOf("in_process"), RanksName);

TEST(InProcessCommunicatorTest, RefusesAMemberInAnotherProcess) {
  InMemoryStore store;
  const std::string elsewhere = absl::StrCat(getpid() + 1, " 1234abcd");
  ASSERT_TRUE(store.Set("test-group/in_process", elsewhere).ok());
  const absl::Status status = CreateInProcess(TestSeat(2, 1, &store)).status();
  EXPECT_TRUE(Tells(status, absl::StatusCode::kFailedPrecondition,
                    {"threads of one process", "use gloo"}));
}

}  // namespace
}  // namespace troupe
