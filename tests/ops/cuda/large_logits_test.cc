// The ops of a vocabulary's layer on more logits than 32 bits count: 65,536
// rows of 50,257, 6.6 GB of bf16. Skips, and says why, where there is no GPU
// with so much memory.
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cross_entropy.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/scratch.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "proto/base/bf16.h"
#include "tests/ops/cuda/with_gpu.h"

namespace troupe {
namespace {

constexpr int64_t kRows = 65'536, kVocabulary = 50'257, kStride = 50'272;
constexpr int64_t kWidth = 8;
constexpr size_t kBytes = kRows * kStride * sizeof(uint16_t);

class LargeLogits : public WithGpu {
 protected:
  void SetUp() override {
    WithGpu::SetUp();
    if (IsSkipped()) return;
    const absl::StatusOr<void*> memory = device_->Allocate(kBytes);
    if (!memory.ok()) GTEST_SKIP() << memory.status();
    memory_ = *memory;
    logits_ = Tensor(memory_, DType::kBF16, {kRows, kStride})
                  .Slice(1, 0, kVocabulary);
  }
  void TearDown() override {
    if (memory_ != nullptr) device_->Free(memory_);
  }

  // Small whole numbers, which bf16 has exactly, and so do their sums here.
  static float Number(int64_t i) { return static_cast<float>(i * 7 % 5 - 2); }

  Tensor Numbers(const Scratch& memory, int64_t rows) {
    std::vector<uint16_t> values(rows * kWidth);
    for (size_t i = 0; i < values.size(); ++i) values[i] = ToBF16(Number(i));
    device_->CopyFromHost(memory.as<void>(), values.data(), 2 * values.size());
    EXPECT_TRUE(device_->Synchronize().ok());
    return Tensor(memory.as<void>(), DType::kBF16, {rows, kWidth});
  }
  std::vector<float> Read(const Tensor& t) {
    std::vector<uint16_t> narrow(t.elements());
    device_->CopyToHost(narrow.data(), t.raw(), 2 * narrow.size());
    EXPECT_TRUE(device_->Synchronize().ok());
    std::vector<float> values;
    for (const uint16_t bits : narrow) values.push_back(FromBF16(bits));
    return values;
  }
  Tensor Row(int64_t row) const {
    return logits_.Slice(0, row, row + 1).Front();
  }
  // All zero but the last row, which is Number(column).
  void FillForBackward() {
    Fill(*device_,
         {.x = Tensor(memory_, DType::kBF16, {kRows, kStride}), .value = 0});
    std::vector<uint16_t> last;
    for (int64_t i = 0; i < kVocabulary; ++i) last.push_back(ToBF16(Number(i)));
    device_->CopyFromHost(Row(kRows - 1).raw(), last.data(), 2 * last.size());
    ASSERT_TRUE(device_->Synchronize().ok());
  }

  void* memory_ = nullptr;
  Tensor logits_;
};

TEST_F(LargeLogits, AreAProduct) {
  const Scratch x_memory(*device_, 2 * kRows * kWidth);
  const Scratch table_memory(*device_, 2 * kVocabulary * kWidth);
  const Tensor x = Numbers(x_memory, kRows);
  const Tensor table = Numbers(table_memory, kVocabulary);
  MatMul(*device_, {.a = x, .b = table, .c = logits_, .transpose_b = true});
  for (const int64_t row : {int64_t{0}, kRows / 2 + 1, kRows - 1}) {
    const std::vector<float> got = Read(Row(row));
    for (int64_t column = 0; column < kVocabulary; ++column) {
      float want = 0;
      for (int64_t i = 0; i < kWidth; ++i) {
        want += Number(row * kWidth + i) * Number(column * kWidth + i);
      }
      ASSERT_EQ(got[column], want) << row << ", " << column;
    }
  }
}

TEST_F(LargeLogits, GiveTheGradientOfTheirInput) {
  FillForBackward();
  const Scratch table_memory(*device_, 2 * kVocabulary * kWidth);
  const Scratch dx_memory(*device_, 2 * kRows * kWidth);
  const Tensor table = Numbers(table_memory, kVocabulary);
  const Tensor dx(dx_memory.as<void>(), DType::kBF16, {kRows, kWidth});
  MatMul(*device_, {.a = logits_, .b = table, .c = dx});
  const std::vector<float> got = Read(dx);
  for (int64_t i = 0; i < kWidth; ++i) {
    double want = 0;
    for (int64_t column = 0; column < kVocabulary; ++column) {
      want += double{Number(column)} * Number(column * kWidth + i);
    }
    EXPECT_NEAR(got[(kRows - 1) * kWidth + i], want, std::abs(want) / 128);
    EXPECT_EQ(got[(kRows - 2) * kWidth + i], 0);
  }
}

TEST_F(LargeLogits, GiveTheGradientOfTheTable) {
  FillForBackward();
  const Scratch x_memory(*device_, 2 * kRows * kWidth);
  const Scratch gradient_memory(*device_, 4 * kVocabulary * kWidth);
  const Tensor x = Numbers(x_memory, kRows);
  const Tensor gradient(gradient_memory.as<void>(), DType::kF32,
                        {kVocabulary, kWidth});
  MatMul(*device_, {.a = logits_, .b = x, .c = gradient, .transpose_a = true});
  std::vector<float> got(gradient.elements());
  device_->CopyToHost(got.data(), gradient.raw(), 4 * got.size());
  ASSERT_TRUE(device_->Synchronize().ok());
  for (int64_t column = 0; column < kVocabulary; ++column) {
    for (int64_t i = 0; i < kWidth; ++i) {
      ASSERT_EQ(got[column * kWidth + i],
                Number(column) * Number((kRows - 1) * kWidth + i))
          << column << ", " << i;
    }
  }
}

// Of equal logits the loss is the vocabulary's logarithm.
TEST_F(LargeLogits, HaveALoss) {
  Fill(*device_,
       {.x = Tensor(memory_, DType::kBF16, {kRows, kStride}), .value = 1});
  const Scratch target_memory(*device_, 4 * kRows);
  const Scratch sum_memory(*device_, 2 * sizeof(double));
  std::vector<int32_t> targets(kRows, kVocabulary - 1);
  device_->CopyFromHost(target_memory.as<void>(), targets.data(), 4 * kRows);
  double sums[2] = {};
  device_->CopyFromHost(sum_memory.as<void>(), sums, sizeof(sums));
  CrossEntropy(
      *device_,
      {.logits = logits_,
       .targets = Tensor(target_memory.as<void>(), DType::kI32, {kRows}),
       .loss_sum = Tensor(sum_memory.as<double>(), DType::kF64, {1}),
       .count = Tensor(sum_memory.as<double>() + 1, DType::kF64, {1}),
       .gradient = true,
       .gradient_scale = 1});
  device_->CopyToHost(sums, sum_memory.as<void>(), sizeof(sums));
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(sums[1], kRows);
  EXPECT_NEAR(sums[0] / kRows, std::log(double{kVocabulary}), 1e-4);
  const std::vector<float> last = Read(Row(kRows - 1));
  EXPECT_NEAR(last[kVocabulary - 2], 1.0 / kVocabulary, 1e-7);
  EXPECT_NEAR(last[kVocabulary - 1], 1.0 / kVocabulary - 1, 1e-2);
}

}  // namespace
}  // namespace troupe
