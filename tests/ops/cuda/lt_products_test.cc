#include "ops/cuda/lt_products.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/scratch.h"

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

class LtProductsTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Create(0);
    if (!device.ok()) GTEST_SKIP() << "no CUDA device: " << device.status();
    device_ = *std::move(device);
  }

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

  std::unique_ptr<CudaDevice> device_;
};

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
