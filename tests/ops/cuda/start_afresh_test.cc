// What a GPU forgets between two jobs, what it gives back, and what it cannot
// forget.
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ops/attention.h"
#include "ops/cuda/cuda_device.h"
#include "ops/gelu.h"
#include "ops/matmul.h"
#include "tests/ops/cuda/with_gpu.h"

namespace troupe {
namespace {

constexpr size_t kBytes = size_t{1} << 20;

class StartAfreshTest : public WithGpu {
 protected:
  void SetUp() override {
    WithGpu::SetUp();
    if (IsSkipped()) return;
    memory_ = device_->Allocate(kBytes).value();
    device_->Zero(memory_, kBytes);
  }
  void TearDown() override {
    if (device_ != nullptr) device_->Free(memory_);
  }

  // f32, one behind the other, 64 KiB apart.
  Tensor At(int place, std::initializer_list<int64_t> shape) {
    return Tensor(static_cast<char*>(memory_) + (place << 16), DType::kF32,
                  shape);
  }
  void ExpectThatItComputes() {
    MatMul(*device_,
           {.a = At(0, {64, 64}), .b = At(1, {64, 64}), .c = At(2, {64, 64})});
    const absl::Status done = device_->Synchronize();
    EXPECT_TRUE(done.ok()) << done;
  }

  void* memory_ = nullptr;
};

TEST_F(StartAfreshTest, AShapeThatNoKernelTakesIsOneJobsError) {
  Attention(*device_, {.q = At(0, {1, 8, 512}),
                       .k = At(1, {1, 8, 512}),
                       .v = At(2, {1, 8, 512}),
                       .o = At(3, {1, 8, 512}),
                       .heads = 1,
                       .kv_heads = 1,
                       .scale = 1.0f});
  const absl::Status wide = device_->Synchronize();
  EXPECT_EQ(wide.code(), absl::StatusCode::kUnimplemented) << wide;
  EXPECT_NE(wide.message().find("not 512"), absl::string_view::npos) << wide;
  const absl::Status fresh = device_->StartAfresh();
  EXPECT_TRUE(fresh.ok()) << fresh;
  ExpectThatItComputes();
}

TEST_F(StartAfreshTest, ACallThatFailsIsOneJobsError) {
  device_->Check(cudaMemset(nullptr, 0, 1 << 20), "cudaMemset");
  EXPECT_FALSE(device_->Synchronize().ok());
  const absl::Status fresh = device_->StartAfresh();
  EXPECT_TRUE(fresh.ok()) << fresh;
  ExpectThatItComputes();
}

// A number that a kernel met, such as a token outside the vocabulary.
TEST_F(StartAfreshTest, ForgetsWhatKernelsSaid) {
  *device_->fault() = {.kind = FaultKind::kToken, .value = 99, .limit = 10};
  EXPECT_FALSE(device_->Synchronize().ok());
  EXPECT_TRUE(device_->StartAfresh().ok());
  EXPECT_EQ(device_->fault()->kind, FaultKind::kNone);
  EXPECT_EQ(device_->fault()->taken, 0);
  ExpectThatItComputes();
}

// The lanes of a rank are threads; when it has ended nothing of theirs is left.
TEST_F(StartAfreshTest, GivesBackWhatThreadsHad) {
  ASSERT_TRUE(device_->StartAfresh().ok());
  EXPECT_EQ(device_->streams(), 0u);
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < 4; ++lane) {
    lanes.emplace_back([this] {
      const Blas blas = device_->blas();
      EXPECT_NE(blas.workspace, nullptr);
      EXPECT_TRUE(device_->Synchronize().ok());
    });
  }
  for (std::thread& lane : lanes) lane.join();
  EXPECT_GE(device_->streams(), 1u);  // ids are used again
  EXPECT_TRUE(device_->StartAfresh().ok());
  EXPECT_EQ(device_->streams(), 0u);
  ExpectThatItComputes();
}

// In a process of its own, which is lost to CUDA afterwards.
TEST_F(StartAfreshTest, AnIllegalAddressStays) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        // Beyond all memory that there is.
        const Tensor nowhere(reinterpret_cast<void*>(uintptr_t{1} << 56),
                             DType::kF32, {1024});
        Gelu(*device_, {.x = nowhere, .y = nowhere});
        const absl::Status illegal = device_->Synchronize();
        const absl::Status stays = device_->StartAfresh();
        std::cerr << stays << std::endl;
        const bool told =
            !illegal.ok() && !stays.ok() && device_->Synchronize() == stays;
        std::_Exit(told ? 0 : 1);
      },
      testing::ExitedWithCode(0), "cannot use the GPU any more");
}

}  // namespace
}  // namespace troupe
