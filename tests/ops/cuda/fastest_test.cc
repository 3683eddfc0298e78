#include "ops/cuda/fastest.h"

#include <memory>

#include "gtest/gtest.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/scratch.h"
#include "tests/ops/cuda/with_gpu.h"

namespace troupe::cuda {
namespace {

using FastestTest = WithGpu;

// Of memory filled once and sixteen times; the way that would be the fastest
// cannot.
TEST_F(FastestTest, IsTheOneWithTheLeastToDo) {
  constexpr size_t kBytes = 256 << 20;
  constexpr int kFills[] = {16, 1, 16, 0};
  const Scratch memory(*device_, kBytes);
  const auto fastest =
      FastestOf(4, device_->stream(), [&](int way) -> absl::StatusOr<bool> {
        for (int i = 0; i < kFills[way]; ++i) {
          device_->Zero(memory.as<void>(), kBytes);
        }
        return kFills[way] > 0;
      });
  ASSERT_TRUE(fastest.ok()) << fastest.status();
  EXPECT_EQ(*fastest, 1);
}

TEST_F(FastestTest, NoneIsWhereNoneCan) {
  const auto fastest = FastestOf(
      2, device_->stream(), [](int) -> absl::StatusOr<bool> { return false; });
  ASSERT_TRUE(fastest.ok()) << fastest.status();
  EXPECT_FALSE(fastest->has_value());
}

TEST_F(FastestTest, AnErrorIsTold) {
  const auto fastest = FastestOf(
      2, device_->stream(),
      [](int) -> absl::StatusOr<bool> { return absl::InternalError("no"); });
  EXPECT_EQ(fastest.status(), absl::InternalError("no"));
}

}  // namespace
}  // namespace troupe::cuda
