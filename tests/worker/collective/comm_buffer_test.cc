#include "worker/collective/comm_buffer.h"

#include <vector>

#include "gtest/gtest.h"
#include "worker/collective/blocks.h"

namespace troupe {
namespace {

TEST(ElementTest, ViewsKnowTheirTypeAndBytes) {
  std::vector<float> f32(3);
  std::vector<uint16_t> bf16(3);
  std::vector<int64_t> i64(3);
  std::vector<char> bytes(3);
  EXPECT_EQ(CommBuffer::Of(absl::MakeSpan(f32)).bytes(), 12);
  EXPECT_EQ(CommBuffer::Of(absl::MakeSpan(bf16)).bytes(), 6);
  EXPECT_EQ(CommBuffer::Of(absl::MakeSpan(i64)).bytes(), 24);
  EXPECT_EQ(CommBuffer::Of(absl::MakeSpan(bytes)).bytes(), 3);
  EXPECT_STREQ(DTypeName(CommBuffer::Of(absl::MakeSpan(bf16)).element), "bf16");
}

TEST(ElementTest, SlicesAreElements) {
  std::vector<double> values(10);
  const CommBuffer slice = CommBuffer::Of(absl::MakeSpan(values)).Slice(3, 7);
  EXPECT_EQ(slice.data, &values[3]);
  EXPECT_EQ(slice.elements, 4);
  EXPECT_EQ(slice.bytes(), 32);
}

// Of addresses alone: nothing is read there.
TEST(ElementTest, BuffersMayHaveMoreElementsThan32BitsCount) {
  char* const begin = reinterpret_cast<char*>(uintptr_t{1} << 20);
  const int64_t elements = (int64_t{1} << 32) + 3;
  const CommBuffer whole = {begin, elements, DType::kF32};
  EXPECT_EQ(whole.bytes(), size_t{4} * elements);
  std::vector<ElementRange> ranges;
  const CommBlocks blocks =
      CutEvenly(whole, {.elements = elements, .members = 3}, ranges);
  EXPECT_EQ(blocks.ranged(), elements);
  EXPECT_EQ(blocks.longest(), elements / 3 + 1);
  const CommBuffer last = blocks.Of(2);
  EXPECT_EQ(static_cast<char*>(last.data), begin + 4 * ranges[2].begin);
  EXPECT_EQ(static_cast<char*>(last.data) + last.bytes(),
            begin + whole.bytes());
}

TEST(ElementDeathTest, SlicesLieWithin) {
  std::vector<double> values(10);
  const CommBuffer all = CommBuffer::Of(absl::MakeSpan(values));
  EXPECT_DEATH(all.Slice(3, 11), "of 10");
}

}  // namespace
}  // namespace troupe
