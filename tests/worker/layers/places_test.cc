// Places of operands and parameters, and where masks come from.
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "ops/dropout.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/mask_source.h"
#include "worker/layers/operand_place.h"
#include "worker/layers/parameter_place.h"

namespace troupe {
namespace {

class PlacesTest : public testing::Test {
 protected:
  PlacesTest() {
    TensorSpec& tensor = *table_.add_tensors();
    *tensor.add_dims() = DimOf({{Dim::BATCH, 1}});
    *tensor.add_dims() = DimOf({{Dim::SEQUENCE, 4}});
    *tensor.add_dims() = DimOf({{Dim::VOCABULARY, 5}});
    tensor.set_dtype(BF16);
    call_.memory[static_cast<size_t>(UnitMemory::kStash)] = memory_.data();
  }

  TensorPlace InStash() const {
    return {.memory = UnitMemory::kStash, .offset_bytes = 64, .tensor = 0};
  }

  const std::unique_ptr<Device> device_ = NewCpuDevice({.threads = 1});
  UnitTable table_;
  std::vector<char> memory_ = std::vector<char>(1024);
  LayerCall call_ = {.device = *device_};
};

TEST_F(PlacesTest, AnOperandIsAViewOfTheCallsMemory) {
  const Tensor tensor = OperandPlace(table_, InStash()).In(call_);
  EXPECT_EQ(tensor.raw(), memory_.data() + 64);
  EXPECT_EQ(tensor.ShapeString(), "bf16[1, 4, 5]");
  EXPECT_TRUE(tensor.dense());
}

TEST_F(PlacesTest, WhatLiesNowhereIsEmpty) {
  EXPECT_FALSE(OperandPlace().In(call_).defined());
  EXPECT_FALSE(OperandPlace(table_, TensorPlace()).In(call_).defined());
  EXPECT_FALSE(ParameterPlace().Values(call_).defined());
}

TEST_F(PlacesTest, RowsMayHaveGaps) {
  table_.mutable_tensors(0)->set_row_alignment(32);
  const Tensor tensor = OperandPlace(table_, InStash()).In(call_);
  EXPECT_EQ(tensor.ShapeString(), "bf16[1, 4, 5]");
  EXPECT_EQ(tensor.RowStride(), 32);
}

TEST_F(PlacesTest, DecodingHasThePositionsOfTheCall) {
  call_.decoding.count = 3;
  EXPECT_EQ(OperandPlace(table_, InStash()).In(call_).ShapeString(),
            "bf16[1, 3, 5]");
  call_.decoding.count = 5;
  EXPECT_DEATH(OperandPlace(table_, InStash()).In(call_), "5");
}

TEST_F(PlacesTest, AMissingBufferIsOurBug) {
  TensorPlace place = InStash();
  place.memory = UnitMemory::kWorkspace;
  EXPECT_DEATH(OperandPlace(table_, place).In(call_),
               "a buffer that the call needs is missing");
}

Parameter Rows(int64_t offset, int64_t rows) {
  Parameter parameter;
  parameter.set_dtype(BF16);
  parameter.set_offset(offset);
  for (const int64_t dim : {rows, int64_t{16}}) {
    *parameter.add_dims() = DimOf({{Dim::HIDDEN, dim}});
  }
  return parameter;
}

TEST_F(PlacesTest, ParametersAreInThePlansDtypeAndGradientsInF32) {
  call_.parameters = memory_.data();
  call_.parameter_gradients = memory_.data() + 512;
  const ParameterPlace place(Rows(8, 2), /*tied=*/false);
  EXPECT_EQ(place.Values(call_).raw(), memory_.data() + 16);
  EXPECT_EQ(place.Values(call_).ShapeString(), "bf16[2, 16]");
  EXPECT_EQ(place.Gradient(call_).raw(), memory_.data() + 512 + 32);
  EXPECT_EQ(place.Gradient(call_).ShapeString(), "f32[2, 16]");
}

// Elements 8 to 40, and 40 to 72 elsewhere: a parameter lies in one of them.
TEST_F(PlacesTest, AFlatBufferMayLieInPieces) {
  FlatMemory pieces;
  pieces.Add({8, 24}, memory_.data(), 2);
  pieces.Add({24, 40}, memory_.data() + 32, 2);  // goes on with the one before
  pieces.Add({40, 72}, memory_.data() + 512, 2);
  call_.parameters = pieces;
  EXPECT_EQ(ParameterPlace(Rows(8, 2), false).Values(call_).raw(),
            memory_.data());
  EXPECT_EQ(ParameterPlace(Rows(40, 2), false).Values(call_).raw(),
            memory_.data() + 512);
  EXPECT_DEATH(ParameterPlace(Rows(24, 2), false).Values(call_),
               "a flat buffer that the call needs is missing");
}

TEST_F(PlacesTest, TiedParametersAreInTheOtherUnitsBuffers) {
  call_.tied_parameters = memory_.data();
  call_.tied_parameter_gradients = memory_.data() + 512;
  const ParameterPlace place(Rows(0, 2), /*tied=*/true);
  EXPECT_EQ(place.Values(call_).raw(), memory_.data());
  EXPECT_EQ(place.Gradient(call_).raw(), memory_.data() + 512);
}

TEST_F(PlacesTest, RowsBelowOneAnotherAreOneParameter) {
  call_.parameters = memory_.data();
  const ParameterPlace above(Rows(0, 2), /*tied=*/false);
  const auto both = above.JoinedWith(ParameterPlace(Rows(32, 3), false));
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->Values(call_).raw(), memory_.data());
  EXPECT_EQ(both->Values(call_).ShapeString(), "bf16[5, 16]");
  EXPECT_FALSE(above.JoinedWith(ParameterPlace(Rows(64, 3), false)));
  EXPECT_FALSE(above.JoinedWith(ParameterPlace(Rows(32, 3), true)));
}

class MaskSourceTest : public PlacesTest {
 protected:
  static MaskSource Source(std::vector<SliceRun> rows, Range own = {0, 24}) {
    Op::Mask mask;
    mask.set_probability(0.5f);
    mask.set_site(2);
    mask.set_sites_per_layer(3);
    return MaskSource(mask, {.seed = 11,
                             .layer = 4,
                             .columns = 24,
                             .own_columns = own,
                             .rows_per_sample = 13,
                             .rows = std::move(rows)});
  }
};

TEST_F(MaskSourceTest, MasksAreIndexedByThePlaceInTheGlobalBatch) {
  call_.context = {.step = 8, .first_sample = 3, .training = true};
  const std::vector<MaskedRows> masked =
      Source({{.whole = 0, .local = 0, .count = 26}}).OfElements(call_);
  ASSERT_EQ(masked.size(), 1u);
  const DropoutMask& mask = masked[0].mask;
  EXPECT_EQ(mask.probability, 0.5f);
  EXPECT_EQ(mask.first_element, uint64_t{3 * 13 * 24});
  EXPECT_EQ(mask.stream.site, 2u + 4 * 3);
  EXPECT_EQ(mask.stream.step, 8u);
  EXPECT_EQ(mask.stream.seed, 11u);
  const AttentionDropout attention = Source({}).OfProbabilities(call_);
  EXPECT_EQ(attention.probability, 0.5f);
  EXPECT_EQ(attention.first_sample, 3);
  EXPECT_EQ(attention.stream.site, 2u + 4 * 3);
}

// Samples of 13 rows, of which a rank has rows 4 and 5 of two.
TEST_F(MaskSourceTest, RowsThatLieApartAreMaskedApart) {
  call_.context = {.first_sample = 3, .training = true};
  const std::vector<MaskedRows> masked =
      Source({{.whole = 4, .local = 0, .count = 2},
              {.whole = 17, .local = 2, .count = 2}})
          .OfElements(call_);
  ASSERT_EQ(masked.size(), 2u);
  EXPECT_EQ(masked[0].mask.first_element, uint64_t{(3 * 13 + 4) * 24});
  EXPECT_EQ(masked[1].mask.first_element, uint64_t{(4 * 13 + 4) * 24});
  const Tensor x(memory_.data(), DType::kF32, {2, 2, 5});
  EXPECT_EQ(masked[1].Of(x, 4).raw(), x.Slice(0, 1, 2).raw());
  EXPECT_EQ(masked[1].Of(x, 4).ShapeString(), "f32[2, 5]");
  const Tensor of_rows(memory_.data(), DType::kF32, {2, 2});
  EXPECT_EQ(masked[1].Of(of_rows, 4).ShapeString(), "f32[2]");
  EXPECT_FALSE(masked[1].Of(Tensor(), 4).defined());
}

// Of 24 columns a rank has 8 to 15, and masks them as a rank that has all does.
TEST_F(MaskSourceTest, ColumnsThatAreCutAreMaskedAsIfAllWereThere) {
  call_.context = {.first_sample = 3, .training = true};
  const std::vector<SliceRun> rows = {{.whole = 13, .local = 0, .count = 2}};
  const auto mask = [&](const Range& own) {
    const std::vector<MaskedRows> masked = Source(rows, own).OfElements(call_);
    EXPECT_EQ(masked.size(), 1u);
    return masked[0].mask;
  };
  const DropoutMask cut = mask({8, 16});
  EXPECT_EQ(cut.first_element, uint64_t{(4 * 13) * 24 + 8});
  EXPECT_EQ(cut.columns, 8);
  EXPECT_EQ(cut.row_stride, 24);
  const auto masked = [&](const DropoutMask& mask, int columns) {
    std::vector<float> ones(2 * columns, 1.0f);
    const Tensor x(ones.data(), DType::kF32, {2, columns});
    ApplyDropout(*device_, {.x = x, .y = x, .mask = mask});
    return ones;
  };
  const std::vector<float> of_all = masked(mask({0, 24}), 24);
  std::vector<float> own;
  for (const int row : {0, 1}) {
    own.insert(own.end(), of_all.begin() + 24 * row + 8,
               of_all.begin() + 24 * row + 16);
  }
  EXPECT_EQ(masked(cut, 8), own);
}

TEST_F(MaskSourceTest, NothingIsMaskedOutsideOfTraining) {
  call_.context = {.step = 8, .first_sample = 3};
  const MaskSource source = Source({{.whole = 4, .local = 0, .count = 2}});
  for (const auto& of :
       {source.OfElements(call_), MaskSource().OfElements(call_)}) {
    ASSERT_EQ(of.size(), 1u);
    EXPECT_EQ(of[0].mask.probability, 0);
    const Tensor all(memory_.data(), DType::kF32, {2, 3, 4});
    EXPECT_TRUE(of[0].Of(all, 6).SameShape(all));
  }
  EXPECT_EQ(source.OfProbabilities(call_).probability, 0);
}

}  // namespace
}  // namespace troupe
