#include "ops/cuda/lt_products.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/scratch.h"
#include "proto/base/bf16.h"
#include "tests/ops/cuda/with_gpu.h"

namespace troupe::cuda {
namespace {

TEST(LtProductMatricesTest, TheLeastAlignedCounts) {
  const auto at = [](uintptr_t address) {
    return reinterpret_cast<void*>(address);
  };
  EXPECT_EQ((LtProductMatrices{.a = at(256), .b = at(512), .c = at(1024)})
                .Alignment(),
            16u);
  EXPECT_EQ((LtProductMatrices{.a = at(256), .b = at(520), .c = at(1024)})
                .Alignment(),
            8u);
  EXPECT_EQ((LtProductMatrices{
                 .a = at(256), .b = at(512), .bias = at(34), .c = at(1024)})
                .Alignment(),
            2u);
}

class LtProductsTest : public WithGpu {
 protected:
  // Ones by ones: every element of c is k. tests/ops/matmul_test.cc has the
  // rest.
  void ExpectOnes(LtProducts& products, int64_t m, int64_t k) {
    constexpr int64_t kColumns = 33;
    const std::vector<float> ones(k * std::max(m, kColumns), 1.0f);
    std::vector<float> got(m * kColumns);
    const Scratch a(*device_, m * k * sizeof(float));
    const Scratch b(*device_, k * kColumns * sizeof(float));
    const Scratch c(*device_, got.size() * sizeof(float));
    device_->CopyFromHost(a.as<void>(), ones.data(), m * k * sizeof(float));
    device_->CopyFromHost(b.as<void>(), ones.data(),
                          k * kColumns * sizeof(float));
    const LtProductMatrices matrices = {
        .a = a.as<void>(), .b = b.as<void>(), .c = c.as<void>()};
    const absl::StatusOr<bool> done =
        products.Multiply({.m = m,
                           .n = kColumns,
                           .k = k,
                           .a_stride = k,
                           .b_stride = kColumns,
                           .c_stride = kColumns,
                           .alignment = matrices.Alignment()},
                          matrices, device_->blas(), device_->stream());
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_TRUE(*done);
    device_->CopyToHost(got.data(), c.as<void>(), got.size() * sizeof(float));
    ASSERT_TRUE(device_->Synchronize().ok());
    EXPECT_EQ(got, std::vector<float>(got.size(), static_cast<float>(k)));
  }

  // A square product in bf16, each element of which is `want`.
  void ExpectEach(const LtProductShape& shape,
                  const LtProductMatrices& matrices, double want) {
    const absl::StatusOr<bool> done = device_->products().Multiply(
        shape, matrices, device_->blas(), device_->stream());
    ASSERT_TRUE(done.ok()) << done.status();
    ASSERT_TRUE(*done) << "it has no kernel for this: two passes do it";
    std::vector<uint16_t> got(shape.m * shape.n);
    device_->CopyToHost(got.data(), matrices.c, got.size() * sizeof(uint16_t));
    ASSERT_TRUE(device_->Synchronize().ok());
    for (const uint16_t bits : got)
      ASSERT_NEAR(FromBF16(bits), want, 1.0 / 256);
  }
};

// With fusions, which it has for bf16: ones by 1/64, so that each sum is 1.
TEST_F(LtProductsTest, FusesGeluAndItsSlopeInBf16) {
  constexpr int64_t kN = 64;
  constexpr double kGeluOf1 = 0.8411919906, kSlopeAt1 = 1.0829640838;
  const std::vector<uint16_t> ones(kN * kN, ToBF16(1.0f));
  const std::vector<uint16_t> parts(kN * kN, ToBF16(1.0f / kN));
  const std::vector<uint16_t> zeros(kN, 0);
  const size_t bytes = kN * kN * sizeof(uint16_t);
  const Scratch a(*device_, bytes), b(*device_, bytes), c(*device_, bytes);
  const Scratch before(*device_, bytes), bias(*device_, bytes);
  device_->CopyFromHost(a.as<void>(), ones.data(), bytes);
  device_->CopyFromHost(b.as<void>(), parts.data(), bytes);
  device_->CopyFromHost(bias.as<void>(), zeros.data(), kN * sizeof(uint16_t));
  LtProductShape shape = {.m = kN,
                          .n = kN,
                          .k = kN,
                          .a_stride = kN,
                          .b_stride = kN,
                          .c_stride = kN,
                          .type = DType::kBF16,
                          .bias = true,
                          .gelu = true,
                          .alignment = 16};
  LtProductMatrices matrices = {.a = a.as<void>(),
                                .b = b.as<void>(),
                                .bias = bias.as<void>(),
                                .before_gelu = before.as<void>(),
                                .c = c.as<void>()};
  ExpectEach(shape, matrices, kGeluOf1);
  shape.bias = shape.gelu = false;
  shape.gelu_slope = true;
  matrices.bias = matrices.before_gelu = nullptr;
  matrices.gelu_input = before.as<void>();
  ExpectEach(shape, matrices, kSlopeAt1);
}

// Choices in memory.
class ChoicesInMemory final : public KeptChoices {
 public:
  absl::optional<std::string> FindOrChoose(
      const std::string& key,
      absl::FunctionRef<std::string()> choose) override {
    ++asked;
    if (kept.count(key) == 0) {
      const std::string choice = choose();
      if (choice.empty()) return absl::nullopt;
      kept[key] = choice;
    }
    return kept[key];
  }

  std::map<std::string, std::string> kept;
  int asked = 0;
};

TEST_F(LtProductsTest, TimesKernelsOnceForThreadsThatWerePrepared) {
  FirstLaunches launches;
  ChoicesInMemory choices;
  const LtChoices of_gpu = {.kept = &choices, .gpu = "a GPU"};
  LtProducts not_prepared(3, launches, of_gpu);
  ExpectOnes(not_prepared, 512, 512);
  EXPECT_EQ(choices.asked, 0);
  device_->PrepareQueue(QueueWork::kProducts);
  // Two processes, one after the other, and one that finds what it cannot read.
  for (int process = 0; process < 3; ++process) {
    LtProducts products(3, launches, of_gpu);
    ExpectOnes(products, 512, 512);
    ExpectOnes(products, 512, 512);
    ASSERT_LE(choices.kept.size(), 1u);  // none where there is but one kernel
    EXPECT_EQ(choices.asked, (process + 1) * choices.kept.size());
    if (process == 1) {
      for (auto& [key, choice] : choices.kept) choice = "not an algorithm";
    }
  }
}

TEST_F(LtProductsTest, KeepsNoChoiceThatItCouldNotTime) {
  FirstLaunches launches(/*patience=*/absl::ZeroDuration());
  ChoicesInMemory choices;
  device_->PrepareQueue(QueueWork::kProducts);
  {
    const FirstLaunches::Operation under_way(launches);
    LtProducts products(3, launches, {.kept = &choices, .gpu = "a GPU"});
    ExpectOnes(products, 512, 512);
    EXPECT_TRUE(choices.kept.empty());
  }
  LtProducts products(3, launches, {.kept = &choices, .gpu = "a GPU"});
  ExpectOnes(products, 512, 512);
  EXPECT_EQ(choices.kept.size(), choices.asked == 2 ? 1u : 0u);
}

TEST_F(LtProductsTest, KeepsNoMoreThanItsBound) {
  FirstLaunches launches;
  LtProducts products(3, launches);
  for (int64_t m = 1; m <= 3; ++m) {
    ExpectOnes(products, m, 20);
    ExpectOnes(products, m, 20);
    EXPECT_EQ(products.kept(), m);
  }
  for (int64_t m = 1; m <= 7; ++m) {
    ExpectOnes(products, m, 24);
    EXPECT_EQ(products.kept(), 3u);
  }
}

}  // namespace
}  // namespace troupe::cuda
