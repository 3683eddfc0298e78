#include "ops/cuda/scratch.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/cuda/cuda_device.h"
#include "tests/ops/cuda/with_gpu.h"

namespace troupe {
namespace {

using ScratchTest = WithGpu;

TEST_F(ScratchTest, KeepsBlocksApartAndAligned) {
  const Scratch a(*device_, 1000), b(*device_, 1000);
  EXPECT_NE(a.as<char>(), b.as<char>());
  for (const Scratch* block : {&a, &b}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->as<char>()) % 256, 0u);
  }
  EXPECT_TRUE(device_->Synchronize().ok());
}

TEST_F(ScratchTest, NothingIsAsNothing) {
  EXPECT_EQ(Scratch(*device_, 0).as<char>(), nullptr);
  EXPECT_TRUE(device_->Synchronize().ok());
}

// The device fails until it starts afresh, and says for what.
TEST_F(ScratchTest, TooMuchIsTheDevicesErrorUntilItStartsAfresh) {
  constexpr size_t kTooMuch = size_t{1} << 50;
  { const Scratch block(*device_, kTooMuch); }
  EXPECT_TRUE(device_->failed());
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = device_->Synchronize();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_NE(status.message().find(absl::StrCat("no memory for ", kTooMuch,
                                                 " bytes on cuda:0: ")),
              absl::string_view::npos)
        << status;
  }
  EXPECT_TRUE(device_->StartAfresh().ok());
  EXPECT_FALSE(device_->failed());
  const Scratch block(*device_, 1000);
  EXPECT_NE(block.as<char>(), nullptr);
  EXPECT_TRUE(device_->Synchronize().ok());
}

}  // namespace
}  // namespace troupe
