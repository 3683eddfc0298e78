#include "ops/cpu/bf16_product.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/instruction_set.h"
#include "proto/base/bf16.h"

namespace troupe {
namespace {

// Ones by ones: every element of c is k. tests/ops/matmul_test.cc has the rest.
void ExpectOnes(Bf16Products& products, ScratchPool& scratch, int64_t m,
                int64_t k) {
  constexpr int64_t kColumns = 33;
  const std::vector<uint16_t> a(m * k, ToBF16(1.0f));
  const std::vector<uint16_t> b(k * kColumns, ToBF16(1.0f));
  std::vector<float> c(m * kColumns, -1.0f);
  products.Multiply(
      {.m = m,
       .n = kColumns,
       .k = k,
       .a_stride = k,
       .b_stride = kColumns,
       .c_stride = kColumns,
       .c_is_f32 = true},
      {.a = a.data(), .b = b.data(), .bias = nullptr, .c = c.data()}, scratch);
  EXPECT_EQ(c, std::vector<float>(c.size(), k));
}

class Bf16ProductsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (InstructionSets().back().bf16_products) return;
    GTEST_SKIP() << "no instructions for bf16, so oneDNN is not asked";
  }
};

TEST_F(Bf16ProductsTest, KeepsNoMoreThanItsBound) {
  ScratchPool scratch(2);
  Bf16Products products(3);
  for (int64_t m = 1; m <= 3; ++m) {
    ExpectOnes(products, scratch, m, 20);
    ExpectOnes(products, scratch, m, 20);
    EXPECT_EQ(products.kept(), m);
  }
  for (int64_t m = 1; m <= 7; ++m) {
    ExpectOnes(products, scratch, m, 24);
    EXPECT_EQ(products.kept(), 3);
  }
}

TEST_F(Bf16ProductsTest, ThreadsShareIt) {
  ScratchPool scratch(4);
  Bf16Products products(2);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int64_t i = 0; i < 20; ++i) {
        ExpectOnes(products, scratch, 1 + i % 3, 17);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(products.kept(), 2);
}

}  // namespace
}  // namespace troupe
