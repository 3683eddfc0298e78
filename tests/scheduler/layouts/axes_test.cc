#include "scheduler/layouts/axes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/layouts/blocks.h"

namespace troupe {
namespace {

std::string Text(const ParallelismSpec& parallelism) {
  std::string text;
  for (const Axis& axis : AxesOf(parallelism)) {
    absl::StrAppend(&text, text.empty() ? "" : " ", axis.name(), " ",
                    axis.size());
  }
  return text;
}

// Of an axis that the job has.
SizeField SizeFieldOf(const ParallelismSpec& parallelism,
                      const std::string& name) {
  for (const SharedAxis& axis : SharedAxes(parallelism)) {
    if (axis.name() == name) return axis.field;
  }
  ADD_FAILURE() << "no axis " << name;
  return {};
}

ParallelismSpec Cube(int tensor) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(tensor);
  parallelism.set_tensor_method("3d");
  return parallelism;
}

TEST(AxesOf, TheChattiestComeLast) {
  ParallelismSpec parallelism;
  EXPECT_EQ(Text(parallelism), "pipeline 1 data 1");
  parallelism.set_data(2);
  parallelism.set_context(8);
  parallelism.set_tensor(8);
  EXPECT_EQ(Text(parallelism), "pipeline 1 data 2 context 8 tensor 8");
  parallelism.set_context_method("usp");
  parallelism.set_ulysses_size(2);
  parallelism.set_tensor_method("1d");
  EXPECT_EQ(Text(parallelism),
            "pipeline 1 data 2 context 4 ulysses 2 tensor 8");
  parallelism.set_tensor_method("3d");
  EXPECT_EQ(Text(parallelism),
            "pipeline 1 data 2 context 4 ulysses 2 tensor_x 2 tensor_y 2 "
            "tensor_z 2");
}

TEST(AxesOf, SquaresHaveRowsAndColumns) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(9);
  parallelism.set_tensor_method("2d");
  EXPECT_EQ(Text(parallelism),
            "pipeline 1 data 1 tensor_row 3 tensor_column 3");
  parallelism.set_tensor(32);
  parallelism.set_tensor_method("2.5d");
  parallelism.set_tensor_depth(2);
  EXPECT_EQ(Text(parallelism),
            "pipeline 1 data 1 tensor_depth 2 tensor_row 4 tensor_column 4");
  const SizeField row = SizeFieldOf(parallelism, "tensor_row");
  EXPECT_EQ(row.value, 32);
  EXPECT_EQ(row.ValueFor(3), 18);
  const SizeField depth = SizeFieldOf(parallelism, "tensor_depth");
  EXPECT_EQ(depth.name, "parallelism.tensor");
  EXPECT_EQ(depth.value, 32);
  EXPECT_EQ(depth.ValueFor(3), 48);
  EXPECT_EQ(depth.TextFor(3), "48 with parallelism.tensor_depth: 3");
  EXPECT_EQ(depth.TextFor(1), "16 with parallelism.tensor_method: 2d");
  EXPECT_EQ(row.TextFor(3), "18 with parallelism.tensor_depth: 2");
  EXPECT_EQ(row.TextFor(1), "2 without parallelism.tensor_method");
}

// Of jobs that nobody has checked yet.
TEST(AxesOf, MoreRanksThanThereMayBe) {
  for (const char* const method : {"2d", "2.5d", "3d"}) {
    ParallelismSpec parallelism;
    parallelism.set_tensor(2147483647);
    parallelism.set_tensor_method(method);
    EXPECT_GE(AxesOf(parallelism).size(), 4u);
  }
  EXPECT_EQ(Root(2147483647, 2), 46340);
  EXPECT_EQ(Root(2147483647, 3), 1290);
}

TEST(AxesOf, OneRankHasNoMethod) {
  EXPECT_EQ(Text(Cube(1)), "pipeline 1 data 1");
}

TEST(AxesOf, CubesHaveSides) {
  for (const int side : {2, 3, 4, 10}) {
    EXPECT_EQ(Text(Cube(side * side * side)),
              absl::StrCat("pipeline 1 data 1 tensor_x ", side, " tensor_y ",
                           side, " tensor_z ", side));
  }
}

TEST(SizeFieldOf, SaysWhatSizesOfTheAxisMeanThere) {
  for (const char* const axis : {"tensor_x", "tensor_y", "tensor_z"}) {
    const SizeField side = SizeFieldOf(Cube(27), axis);
    EXPECT_EQ(side.name, "parallelism.tensor");
    EXPECT_EQ(side.value, 27);
    EXPECT_EQ(side.ValueFor(2), 8);
    EXPECT_EQ(side.ValueFor(1), 1);
    EXPECT_TRUE(side.part_of.empty());
    EXPECT_TRUE(side.MayBe(1));
  }
  ParallelismSpec parallelism;
  parallelism.set_tensor(6);
  parallelism.set_context(12);
  parallelism.set_context_method("usp");
  parallelism.set_ulysses_size(3);
  const SizeField tensor = SizeFieldOf(parallelism, "tensor");
  EXPECT_EQ(tensor.name, "parallelism.tensor");
  EXPECT_EQ(tensor.value, 6);
  EXPECT_EQ(tensor.ValueFor(2), 2);
  const SizeField rings = SizeFieldOf(parallelism, "context");
  EXPECT_EQ(rings.name, "parallelism.context");
  EXPECT_EQ(rings.value, 12);
  EXPECT_EQ(rings.ValueFor(2), 6);
  EXPECT_FALSE(rings.MayBe(1));
  const SizeField groups = SizeFieldOf(parallelism, "ulysses");
  EXPECT_EQ(groups.name, "parallelism.ulysses_size");
  EXPECT_EQ(groups.part_of, "parallelism.context");
  EXPECT_TRUE(groups.MayBe(4));
  EXPECT_FALSE(groups.MayBe(5));
}

}  // namespace
}  // namespace troupe
