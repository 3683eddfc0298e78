#include "proto/plan/unit_builder.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(UnitBuilderTest, StartsEachParameterOnACacheLineOfBf16) {
  UnitBuilder builder(Unit::BLOCK, 3, BF16);
  builder.Add("a", {3, 11}, Parameter::NORMAL, 0.5);
  builder.Add("b", {32}, Parameter::ONES);
  builder.Add("c", {1}, Parameter::ZEROS);
  const Unit& unit = builder.unit();
  EXPECT_EQ(unit.kind(), Unit::BLOCK);
  EXPECT_EQ(unit.parameters(0).offset(), 0);
  EXPECT_EQ(unit.parameters(1).offset(), 64);
  EXPECT_EQ(unit.parameters(2).offset(), 96);
  EXPECT_EQ(unit.flat_elements(), 128);
  EXPECT_EQ(unit.parameters(0).dtype(), BF16);
  EXPECT_EQ(unit.parameters(0).init_std(), 0.5);
  EXPECT_TRUE(unit.parameters(0).weight_decay());
  EXPECT_FALSE(unit.parameters(1).weight_decay());
}

TEST(UnitBuilderTest, GivesEachParameterARandomSiteOfItsOwn) {
  UnitBuilder first(Unit::EMBEDDING, 0, F32);
  UnitBuilder second(Unit::BLOCK, 1, F32);
  for (int i = 0; i < 64; ++i) {
    first.Add("x", {1}, Parameter::ZEROS);
    second.Add("x", {1}, Parameter::ZEROS);
  }
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(first.unit().parameters(i).random_site(), i);
    EXPECT_EQ(second.unit().parameters(i).random_site(), 64 + i);
  }
}

TEST(UnitBuilderTest, BuffersHoldTensorsOnCacheLines) {
  EXPECT_EQ(BufferBytes({1, 16, 17}, F32), 64 + 64 + 128);
  EXPECT_EQ(BufferBytes({1, 32, 33}, BF16), 64 + 64 + 128);
  EXPECT_EQ(BufferBytes({}, F32), 0);
}

TEST(UnitBuilderTest, AHeadIsTiedOrHasATableOfItsOwn) {
  HeadShape shape = {.rows = 16,
                     .width = 32,
                     .vocab = 100,
                     .dtype = BF16,
                     .norm_statistics = 2,
                     .tied_to = "table"};
  UnitBuilder tied(Unit::HEAD, 2, BF16);
  CompleteHead(shape, tied);
  EXPECT_EQ(tied.unit().parameters_size(), 0);
  ASSERT_EQ(tied.unit().tied_size(), 1);
  EXPECT_EQ(tied.unit().tied(0).unit(), 0);
  EXPECT_EQ(tied.unit().tied(0).parameter(), "table");

  shape.tied_to = "";
  shape.init_std = 0.5;
  UnitBuilder own(Unit::HEAD, 2, BF16);
  CompleteHead(shape, own);
  EXPECT_EQ(own.unit().tied_size(), 0);
  ASSERT_EQ(own.unit().parameters_size(), 1);
  EXPECT_EQ(own.unit().parameters(0).name(), "lm_head.weight");
  EXPECT_EQ(own.unit().parameters(0).init_std(), 0.5);

  for (const Unit& unit : {tied.unit(), own.unit()}) {
    // Two statistics of 16 rows in f32; the norm's output and the logits, whose
    // rows are on cache lines.
    EXPECT_EQ(unit.stash_bytes(), 2 * 64 + 2 * 16 * 32 + 2 * 16 * 128);
    EXPECT_EQ(unit.weight_stash_bytes(), 2 * 16 * 32);
    EXPECT_EQ(unit.forward().matmul_flops(), 2.0 * 16 * 32 * 100);
  }
}

}  // namespace
}  // namespace troupe
