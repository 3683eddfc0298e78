// Of worker/collective/nccl/absent.cc: what a build without CUDA says.
#include "gtest/gtest.h"
#include "ops/cuda/device.h"
#include "tests/worker/collective/ranks.h"
#include "worker/collective/nccl/nccl_communicator.h"

namespace troupe {
namespace {

TEST(NcclAbsentTest, SaysHowToHaveIt) {
  if (BuiltWithCuda()) GTEST_SKIP() << "this build has NCCL";
  InMemoryStore store;
  EXPECT_EQ(CreateNccl(TestSeat(2, 0, &store)).status(),
            absl::UnimplementedError(
                "this build has no NCCL; build with --config=cuda"));
  EXPECT_EQ(NcclVersion(), "");
}

}  // namespace
}  // namespace troupe
