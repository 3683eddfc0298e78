#include "gtest/gtest.h"
#include "ops/cuda/device.h"

namespace troupe {
namespace {

TEST(AbsentCuda, SaysHowToBuildWithIt) {
  if (BuiltWithCuda()) GTEST_SKIP() << "this build has CUDA";
  const absl::Status status = NewCudaDevice({.ordinal = 0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "this build has no CUDA; build with --config=cuda");
}

}  // namespace
}  // namespace troupe
