#include "worker/model/tensor_place.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

TEST(BufferLayoutTest, EachTensorStartsOnACacheLine) {
  BufferLayout layout;
  EXPECT_EQ(layout.bytes(), 0);
  const TensorPlace a = layout.Add({3, 5});
  const TensorPlace b = layout.Add({2, 3, 7});
  const TensorPlace c = layout.Add({16});
  EXPECT_EQ(a.offset_bytes, 0);
  EXPECT_EQ(b.offset_bytes, 64);
  EXPECT_EQ(c.offset_bytes, 64 + 192);
  EXPECT_EQ(layout.bytes(), 64 + 192 + 64);
}

TEST(TensorPlaceTest, BecomesATensorOfAnyBuffer) {
  BufferLayout layout;
  layout.Add({1});
  const TensorPlace place = layout.Add({2, 3, 4, 1});
  std::vector<float> one(64), other(64);
  EXPECT_EQ(place.In(one.data()).data<float>(), one.data() + 16);
  const Tensor tensor = place.In(other.data());
  EXPECT_EQ(tensor.data<float>(), other.data() + 16);
  EXPECT_EQ(tensor.ShapeString(), "f32[2, 3, 4, 1]");
}

TEST(TensorPlaceDeathTest, NamesAMissingBuffer) {
  const TensorPlace place = BufferLayout().Add({4});
  EXPECT_DEATH(place.In(nullptr), "buffer that the call needs is missing");
}

TEST(FindParameterTest, FindsByNameAndRefusesOtherShapes) {
  const Unit unit = UnitWith({{"a", {3}}, {"b", {2, 5}}});
  const auto found = FindParameter(unit, "b", {2, 5});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->values.offset_bytes, 128);
  EXPECT_EQ(FindParameter(unit, "b", {5, 2}).status().message(),
            "parameter b is F32[2, 5] in the plan, but the model needs "
            "F32[5, 2]");
  EXPECT_THAT(std::string(FindParameter(unit, "c", {1}).status().message()),
              testing::HasSubstr("no parameter named c"));
}

TEST(FindParameterTest, GradientsOfBf16AreF32) {
  Unit unit = UnitWith({{"a", {3}}, {"b", {2, 5}}});
  unit.mutable_parameters(1)->set_dtype(BF16);
  const ParameterPlace b = *FindParameter(unit, "b", {2, 5});
  std::vector<char> buffer(512);
  const Tensor values = b.values.In(buffer.data());
  EXPECT_EQ(values.ShapeString(), "bf16[2, 5]");
  EXPECT_EQ(values.raw(), buffer.data() + 32 * 2);
  const Tensor gradient = b.gradient.In(buffer.data());
  EXPECT_EQ(gradient.ShapeString(), "f32[2, 5]");
  EXPECT_EQ(gradient.raw(), buffer.data() + 32 * 4);
}

TEST(JoinRowsTest, JoinsWhatLiesSideBySide) {
  const Unit unit = UnitWith({{"a", {4, 8}}, {"b", {3, 8}}, {"c", {2, 8}}});
  const ParameterPlace a = *FindParameter(unit, "a", {4, 8});
  const ParameterPlace b = *FindParameter(unit, "b", {3, 8});
  const ParameterPlace c = *FindParameter(unit, "c", {2, 8});
  const auto joined = JoinRows(a, b);
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->values.dims, (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(joined->gradient.dims, (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(joined->values.offset_bytes, 0);
  EXPECT_FALSE(JoinRows(b, c).has_value()) << "24 elements leave a gap";
}

}  // namespace
}  // namespace troupe
