#include "ops/tensor.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Tensor, ShapeAndAccess) {
  float data[24];
  const Tensor t(data, DType::kF32, {2, 3, 4});
  EXPECT_EQ(t.rank(), 3);
  EXPECT_EQ(t.elements(), 24);
  EXPECT_EQ(t.bytes(), 96u);
  EXPECT_EQ(t.rows(), 6);
  EXPECT_EQ(t.columns(), 4);
  EXPECT_EQ(t.RowStride(), 4);
  EXPECT_EQ(t.dim(-2), 3);
  EXPECT_TRUE(t.dense());
  EXPECT_EQ(t.data<float>(), data);
  EXPECT_EQ(t.ShapeString(), "f32[2, 3, 4]");
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, SlicesAreStridedViews) {
  float data[24];
  const Tensor t(data, DType::kF32, {2, 3, 4});
  const Tensor columns = t.Slice(2, 1, 3);
  EXPECT_EQ(columns.data<float>(), data + 1);
  EXPECT_EQ(columns.RowStride(), 4);
  EXPECT_EQ(columns.rows(), 6);
  EXPECT_FALSE(columns.dense());
  const Tensor second = t.Slice(0, 1, 2);
  EXPECT_EQ(second.data<float>(), data + 12);
  EXPECT_TRUE(second.dense());
  EXPECT_EQ(second.View({12}).data<float>(), data + 12);
  EXPECT_EQ(t.Slice(0, 1, 2).Front().ShapeString(), "f32[3, 4]");
}

TEST(Tensor, TheSameViewOfOtherMemory) {
  float here[24], there[24];
  const Tensor slice = Tensor(here, DType::kF32, {4, 6}).Slice(1, 1, 3);
  const Tensor moved = slice.At(there);
  EXPECT_EQ(moved.raw(), there);
  EXPECT_EQ(moved.ShapeString(), slice.ShapeString());
  EXPECT_EQ(moved.stride(0), 6);
}

TEST(Tensor, RowsOfASliceInTheMiddleMergeOnlyWhereTheyCan) {
  float data[24];
  const Tensor t(data, DType::kF32, {2, 3, 4});
  EXPECT_EQ(t.Slice(1, 0, 1).RowStride(), 12);  // one row of each
  EXPECT_DEATH(t.Slice(1, 0, 2).RowStride(), "do not merge");
}

// Of addresses alone: nothing is read there.
TEST(Tensor, MayHaveMoreElementsThan32BitsCount) {
  char* const begin = reinterpret_cast<char*>(uintptr_t{1} << 20);
  const Tensor logits(begin, DType::kBF16, {65536, 50264});
  EXPECT_EQ(logits.elements(), int64_t{65536} * 50264);
  EXPECT_EQ(logits.bytes(), size_t{2} * 65536 * 50264);
  const Tensor rows = logits.Slice(0, 65000, 65536);
  EXPECT_EQ(static_cast<char*>(rows.raw()), begin + int64_t{65000} * 50264 * 2);
  const Tensor columns = logits.Slice(1, 50000, 50264);
  EXPECT_EQ(columns.rows() * columns.RowStride(), int64_t{65536} * 50264);
}

TEST(Tensor, BugsDie) {
  float data[6];
  const Tensor t(data, DType::kF32, {2, 3});
  EXPECT_DEATH(t.data<int32_t>(), "tensor holds f32, not i32");
  EXPECT_DEATH(t.View({7}), "f32\\[7\\] of f32\\[2, 3\\]");
  EXPECT_DEATH(t.Slice(0, 1, 3), "dim 0 of f32\\[2, 3\\]");
  EXPECT_DEATH(t.Slice(1, 0, 2).View({4}), "not dense");
  EXPECT_DEATH(Tensor(nullptr, DType::kF32, {1}), "at null");
}

TEST(Tensor, EmptyTensors) {
  const Tensor t(nullptr, DType::kF32, {0, 5});
  EXPECT_EQ(t.elements(), 0);
  EXPECT_EQ(t.rows(), 0);
  EXPECT_TRUE(t.dense());
}

}  // namespace
}  // namespace troupe
