#include "storage/checkpoint/tensor_box.h"

#include <limits>
#include <numeric>

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// The flat numbers of a box's elements, in the order of a dense buffer.
std::vector<int64_t> Elements(const TensorBox& box,
                              const std::vector<int64_t>& shape) {
  std::vector<int64_t> all(ElementCount(shape));
  std::iota(all.begin(), all.end(), 0);
  std::vector<int64_t> picked(ElementCount(box.shape), -1);
  const TensorBox whole = WholeTensor(shape);
  CopyBox({.region = box,
           .from_box = whole,
           .from = reinterpret_cast<const char*>(all.data()),
           .to_box = box,
           .to = reinterpret_cast<char*>(picked.data()),
           .element_bytes = 8});
  return picked;
}

std::vector<FlatRange> RangesUpTo(int64_t size) {
  std::vector<FlatRange> ranges;
  for (int64_t begin = 0; begin <= size; ++begin) {
    for (int64_t count = 0; begin + count <= size; ++count) {
      ranges.push_back({begin, count});
    }
  }
  return ranges;
}

TEST(TensorBox, CopyPicksTheRightElements) {
  EXPECT_EQ(Elements({{1, 1}, {2, 2}}, {3, 4}),
            (std::vector<int64_t>{5, 6, 9, 10}));
  EXPECT_EQ(Elements({{1, 0, 1}, {1, 2, 1}}, {2, 2, 2}),
            (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(Elements({{}, {}}, {}), (std::vector<int64_t>{0}));
  EXPECT_TRUE(Elements({{0, 1}, {3, 0}}, {3, 4}).empty());
}

TEST(TensorBox, RangesOfEveryTensorAreWrittenAsFewBoxes) {
  const std::vector<std::vector<int64_t>> shapes = {
      {},        {7},       {3, 4},       {1, 5}, {5, 1},
      {2, 3, 4}, {3, 1, 2}, {2, 2, 2, 3}, {0, 3}};
  for (const auto& shape : shapes) {
    const int64_t count = ElementCount(shape);
    for (int64_t begin = 0; begin <= count; ++begin) {
      for (int64_t end = begin; end <= count; ++end) {
        std::vector<int64_t> elements;
        const auto boxes = BoxesOfRange(shape, {begin, end - begin});
        for (const TensorBox& box : boxes) {
          ASSERT_TRUE(CheckInside(box, shape).ok()) << FormatBox(box);
          for (int64_t e : Elements(box, shape)) elements.push_back(e);
        }
        std::vector<int64_t> want(end - begin);
        std::iota(want.begin(), want.end(), begin);
        ASSERT_EQ(elements, want);
        EXPECT_LE(boxes.size(), shape.empty() ? 1 : 2 * shape.size() - 1);
        if (begin == 0 && end == count && count > 0) {
          EXPECT_EQ(boxes.size(), 1u);
          EXPECT_EQ(boxes[0], WholeTensor(shape));
        }
      }
    }
  }
}

// All boxes in a box that itself starts anywhere.
TEST(TensorBox, RangesOfEveryBoxAreItsElementsInOrder) {
  const TensorBox whole = {{1, 0, 2}, {3, 2, 4}};
  const std::vector<int64_t> all = Elements(whole, {5, 2, 6});
  const auto check = [&](const TensorBox& box) {
    std::vector<int64_t> elements;
    int64_t last = -1;
    for (const auto& [begin, count] : RangesOfBox(box, whole)) {
      EXPECT_GT(begin, last) << "touches the one before: " << FormatBox(box);
      last = begin + count;
      elements.insert(elements.end(), all.begin() + begin, all.begin() + last);
    }
    EXPECT_EQ(elements, Elements(box, {5, 2, 6})) << FormatBox(box);
  };
  for (const FlatRange& x : RangesUpTo(3)) {
    for (const FlatRange& y : RangesUpTo(2)) {
      for (const FlatRange& z : RangesUpTo(4)) {
        check(
            {{1 + x.begin, y.begin, 2 + z.begin}, {x.count, y.count, z.count}});
      }
    }
  }
  const auto scalar = RangesOfBox({{}, {}}, {{}, {}});
  ASSERT_EQ(scalar.size(), 1u);
  EXPECT_EQ(scalar[0].begin, 0);
  EXPECT_EQ(scalar[0].count, 1);
}

TEST(TensorBox, EvenPartitionsTile) {
  const std::vector<int64_t> shape = {5, 3, 4};
  for (int64_t parts = 1; parts <= 60; ++parts) {
    std::vector<TensorBox> boxes;
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t begin = 60 * p / parts;
      for (TensorBox& box :
           BoxesOfRange(shape, {begin, 60 * (p + 1) / parts - begin})) {
        boxes.push_back(std::move(box));
      }
    }
    EXPECT_TRUE(CheckTiling(boxes, shape).ok());
    // Without any one of them it is no tiling, and with one twice neither.
    std::vector<TensorBox> less = boxes;
    less.erase(less.begin() + parts % less.size());
    EXPECT_FALSE(CheckTiling(less, shape).ok());
    boxes.push_back(boxes[parts % boxes.size()]);
    EXPECT_FALSE(CheckTiling(boxes, shape).ok());
  }
}

TEST(TensorBox, TilingErrorsNameTheShards) {
  EXPECT_TRUE(Fails(CheckTiling({{{0, 0}, {2, 4}}, {{1, 2}, {3, 2}}}, {4, 4}),
                    absl::StatusCode::kInvalidArgument,
                    {"[0:2, 0:4] and [1:4, 2:4] overlap"}));
  EXPECT_TRUE(Fails(CheckTiling({{{0, 0}, {2, 4}}}, {4, 4}),
                    absl::StatusCode::kInvalidArgument,
                    {"hold 8 of the 16 elements"}));
  EXPECT_TRUE(Fails(CheckTiling({{{0, 0}, {5, 4}}}, {4, 4}),
                    absl::StatusCode::kInvalidArgument, {"is not inside"}));
  EXPECT_TRUE(CheckTiling({}, {4, 0}).ok());
  EXPECT_TRUE(CheckTiling({{{}, {}}}, {}).ok());
  EXPECT_FALSE(CheckTiling({}, {}).ok());
  EXPECT_FALSE(CheckTiling({{{}, {}}, {{}, {}}}, {}).ok());
}

TEST(TensorBox, InsideNeverOverflows) {
  EXPECT_FALSE(CheckInside({{1}, {kHuge}}, {10}).ok());
  EXPECT_FALSE(CheckInside({{kHuge}, {1}}, {10}).ok());
  EXPECT_FALSE(CheckInside({{-1}, {1}}, {10}).ok());
  EXPECT_FALSE(CheckInside({{0}, {-1}}, {10}).ok());
  EXPECT_FALSE(CheckInside({{0, 0}, {1, 1}}, {10}).ok());
  EXPECT_TRUE(CheckInside({{10}, {0}}, {10}).ok());
}

TEST(TensorBox, ShapesFromFilesAreBounded) {
  EXPECT_TRUE(CheckShape({}).ok());
  EXPECT_TRUE(CheckShape({kHuge, 0}).ok());
  EXPECT_TRUE(CheckShape({kElementsMax}).ok());
  EXPECT_FALSE(CheckShape({kElementsMax, 2}).ok());
  EXPECT_FALSE(CheckShape({kHuge, kHuge, 2}).ok());
  EXPECT_FALSE(CheckShape({3, -1}).ok());
  EXPECT_FALSE(CheckShape({0, -1}).ok());
  EXPECT_EQ(ElementCount({kHuge, kHuge, 0}), 0);
  EXPECT_TRUE(CheckTiling({}, {kHuge, kHuge, 0}).ok());
}

TEST(TensorBox, Intersect) {
  EXPECT_EQ(Intersect({{0, 0}, {3, 3}}, {{1, 2}, {5, 5}}),
            (TensorBox{{1, 2}, {2, 1}}));
  EXPECT_FALSE(Intersect({{0, 0}, {3, 3}}, {{3, 0}, {1, 3}}).has_value());
}

}  // namespace
}  // namespace troupe
