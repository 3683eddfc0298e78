#include "worker/collective/reduce.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/fp16.h"

namespace troupe {
namespace {

template <typename T>
CommBuffer View(std::vector<T>& values) {
  return CommBuffer::Of(absl::MakeSpan(values));
}

uint16_t Upper(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

template <typename T>
void CheckSizes() {
  for (int64_t size : {0, 1, 7, 2048, 2049, 5000}) {
    std::vector<T> a(size), b(size), c(size), sum(size);
    for (int64_t i = 0; i < size; ++i) {
      a[i] = static_cast<T>(i % 13);
      b[i] = static_cast<T>(i % 7 - 3);
      c[i] = static_cast<T>(2);
    }
    ReduceRows(ReduceOp::kSum, View(sum), {View(a), View(b), View(c)});
    std::vector<T> into = a;
    ReduceInto(ReduceOp::kMax, View(into), View(b));
    for (int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(sum[i], a[i] + b[i] + c[i]);
      ASSERT_EQ(into[i], std::max(a[i], b[i]));
    }
    ReduceRows(ReduceOp::kSum, View(b), {View(a), View(b), View(c)});
    EXPECT_EQ(b, sum);  // the result may take the place of a row
  }
}

TEST(ReduceTest, EveryType) {
  CheckSizes<float>();
  CheckSizes<double>();
  CheckSizes<int32_t>();
  CheckSizes<int64_t>();
}

TEST(ReduceTest, RowsAreAddedInOrder) {
  std::vector<float> big = {1e8f}, small = {1.0f}, minus = {-1e8f}, sum = {0};
  ReduceRows(ReduceOp::kSum, View(sum), {View(big), View(small), View(minus)});
  EXPECT_EQ(sum[0], 0.0f);
  ReduceRows(ReduceOp::kSum, View(sum), {View(big), View(minus), View(small)});
  EXPECT_EQ(sum[0], 1.0f);
}

TEST(ReduceTest, BF16IsRoundedOnceToNearestEven) {
  // 256 + 1 + 1: bf16 holds 256 and 258, not 257, which would round to 256.
  std::vector<uint16_t> a = {Upper(256)}, one = {Upper(1)}, sum = {0};
  ReduceRows(ReduceOp::kSum, View(sum), {View(a), View(one), View(one)});
  EXPECT_EQ(sum[0], Upper(258));
  ReduceRows(ReduceOp::kSum, View(sum), {View(a), View(one)});
  EXPECT_EQ(sum[0], Upper(256));  // 257 is a tie
  std::vector<uint16_t> three = {Upper(3)};
  ReduceInto(ReduceOp::kSum, View(a), View(three));
  EXPECT_EQ(a[0], Upper(260));  // 259 is a tie
}

TEST(ReduceTest, FP16IsRoundedOnceToNearestEven) {
  // 2048 + 1 + 1: fp16 holds 2048 and 2050, not 2049.
  std::vector<uint16_t> a = {ToFP16(2048)}, one = {ToFP16(1)}, sum = {0};
  const auto view = [](std::vector<uint16_t>& values) {
    CommBuffer buffer = View(values);
    buffer.element = DType::kF16;
    return buffer;
  };
  ReduceRows(ReduceOp::kSum, view(sum), {view(a), view(one), view(one)});
  EXPECT_EQ(sum[0], ToFP16(2050));
  // Beyond its range is infinity, which stays.
  std::vector<uint16_t> large = {ToFP16(65504)};
  ReduceInto(ReduceOp::kSum, view(large), view(large));
  EXPECT_EQ(large[0], 0x7c00);
  ReduceInto(ReduceOp::kSum, view(large), view(one));
  EXPECT_EQ(large[0], 0x7c00);
}

TEST(ReduceTest, NotANumberStays) {
  std::vector<float> a = {NAN, 1, NAN}, b = {1, NAN, NAN};
  ReduceInto(ReduceOp::kMax, View(a), View(b));
  for (const float value : a) EXPECT_TRUE(std::isnan(value));
  std::vector<uint16_t> c = {0x7f81}, zero = {0};  // would round to infinity
  ReduceInto(ReduceOp::kSum, View(c), View(zero));
  EXPECT_GT(c[0] & 0x7fff, 0x7f80);
}

TEST(ReduceDeathTest, BytesHaveNoSum) {
  std::vector<char> a(1), b(1);
  EXPECT_DEATH(ReduceInto(ReduceOp::kSum, View(a), View(b)), "bytes");
}

}  // namespace
}  // namespace troupe
