// Grouped products by oneDNN's primitives for bf16, whose rows are rounded up:
// on any machine with AVX-512, where oneDNN has slow code for them. The
// contract (tests/ops/grouped_matmul_test.cc) runs them only where there are
// instructions for bf16.
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/cpu_device.h"
#include "ops/grouped_matmul.h"
#include "tests/ops/test_tensor.h"

namespace troupe {
namespace {

class GroupedPrimitivesTest : public testing::Test {
 protected:
  void SetUp() override {
    const InstructionSet& own = InstructionSets().back();
    if (!own.shares_packed) GTEST_SKIP() << "no AVX-512";
    InstructionSet with = own, without = own;
    with.bf16_products = true;
    without.bf16_products = false;
    with_ = std::make_unique<CpuDevice>(2, with);
    without_ = std::make_unique<CpuDevice>(2, without);
  }

  Values Random(int64_t count) {
    std::normal_distribution<double> normal;
    Values values(count);
    for (double& v : values) v = normal(generator_);
    return AsStored(DType::kBF16, values);
  }

  std::unique_ptr<CpuDevice> with_, without_;
  std::mt19937 generator_{1};
};

constexpr int64_t kIn = 40, kOut = 70;

// Groups at both ends of the rows, of whole and of odd numbers of rows, of more
// than a block's; so few rows in all that none can be rounded up.
const std::vector<std::vector<double>> kOffsets = {
    {0, 5, 5, 37, 69, 400, 409}, {0, 1, 9}, {3, 300, 333}, {0, 16, 32}};

TEST_F(GroupedPrimitivesTest, RowsAreRoundedUpAndOthersStay) {
  for (const Values& offsets : kOffsets) {
    const auto groups = static_cast<int64_t>(offsets.size()) - 1;
    const auto rows = static_cast<int64_t>(offsets.back());
    for (const bool accumulate : {false, true}) {
      const Values a = Random(rows * kIn), b = Random(groups * kOut * kIn);
      const Values before = Random(rows * kOut);
      std::vector<Values> results;
      for (Device* const device : {with_.get(), without_.get()}) {
        const TestTensor ta(*device, {rows, kIn}, a, DType::kBF16);
        const TestTensor tb(*device, {groups, kOut, kIn}, b, DType::kBF16);
        const TestTensor c(*device, {rows, kOut}, before, DType::kBF16);
        const TestTensor at(*device, {groups + 1}, offsets, DType::kI32);
        GroupedMatMul(*device, {.a = ta,
                                .b = tb,
                                .c = c,
                                .offsets = at,
                                .transpose_b = true,
                                .accumulate = accumulate});
        results.push_back(c.Read());
      }
      EXPECT_LT(RelativeError(results[0], results[1]), kBF16Error);
    }
  }
}

TEST_F(GroupedPrimitivesTest, WeightGradientsOverOddNumbersOfRows) {
  for (const Values& offsets : kOffsets) {
    const auto groups = static_cast<int64_t>(offsets.size()) - 1;
    const auto rows = static_cast<int64_t>(offsets.back());
    for (const DType type : {DType::kF32, DType::kBF16}) {
      for (const bool accumulate : {false, true}) {
        const Values x = Random(rows * kIn), dy = Random(rows * kOut);
        const Values before = Random(groups * kOut * kIn);
        std::vector<Values> results;
        for (Device* const device : {with_.get(), without_.get()}) {
          const TestTensor tx(*device, {rows, kIn}, x, DType::kBF16);
          const TestTensor tdy(*device, {rows, kOut}, dy, DType::kBF16);
          const TestTensor dw(*device, {groups, kOut, kIn}, before, type);
          const TestTensor at(*device, {groups + 1}, offsets, DType::kI32);
          GroupedWeightGradient(*device, {.x = tx,
                                          .dy = tdy,
                                          .offsets = at,
                                          .dw = dw,
                                          .accumulate = accumulate});
          results.push_back(dw.Read());
        }
        EXPECT_LT(RelativeError(results[0], results[1]), ErrorOf(type));
      }
    }
  }
}

// What a step with other numbers of rows each time leaves: at most one
// primitive for each 16 rows up to a block's 256.
TEST_F(GroupedPrimitivesTest, FewPrimitivesForAnyNumberOfRows) {
  constexpr int64_t kRows = 600;
  const TestTensor a(*with_, {kRows, kIn}, Random(kRows * kIn), DType::kBF16);
  const TestTensor b(*with_, {1, kOut, kIn}, Random(kOut * kIn), DType::kBF16);
  const TestTensor c(*with_, DType::kBF16, {kRows, kOut});
  for (double rows = 1; rows <= 512; rows += 3) {
    const TestTensor at(*with_, {2}, {0, rows}, DType::kI32);
    GroupedMatMul(*with_,
                  {.a = a, .b = b, .c = c, .offsets = at, .transpose_b = true});
  }
  // And as many that are stored at once, since they are of whole 16 rows.
  EXPECT_LE(with_->one_thread_bf16_products().kept(), 32);
}

}  // namespace
}  // namespace troupe
