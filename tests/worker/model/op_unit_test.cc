#include "worker/model/op_unit.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/numeric.h"
#include "tests/worker/model/small_units.h"
#include "tests/worker/model/unit_harness.h"

namespace troupe {
namespace {

constexpr double kScale = 0.125;

struct Case {
  SmallUnit unit;
  double dropout;
};

void PrintTo(const Case& c, std::ostream* out) {
  PrintTo(c.unit, out);
  *out << " with dropout " << c.dropout;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const SmallUnit& unit : SmallUnits()) {
    cases.push_back({unit, 0});
    if (unit.dropout) cases.push_back({unit, 0.3});
  }
  return cases;
}

std::vector<float> Copy(const DeviceMemory& memory) {
  return {memory.span().begin(), memory.span().end()};
}

// Also where nobody has written: there are NaNs.
bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](float x, float y) { return x == y || (x != x && y != y); });
}

class OpUnitTest : public testing::TestWithParam<Case> {
 protected:
  OpUnitTest()
      : unit_(GetParam().unit.units(GetParam().dropout), GetParam().unit.index,
              /*seed=*/4) {
    unit_.batch = SmallBatch();
  }

  // Of the output, each element weighed, and of the head its loss.
  double Loss() {
    unit_.scalars[0] = 0;
    unit_.Forward(context_);
    return Dot(unit_.output.span(), unit_.d_output.span()) +
           kScale * unit_.scalars[0];
  }

  const MicroBatchContext context_ = {
      .step = 5, .first_sample = 6, .training = true, .gradient_scale = kScale, .token_scale = kScale};
  UnitHarness unit_;
};

TEST_P(OpUnitTest, BackwardAgreesWithFiniteDifferences) {
  unit_.Forward(context_);
  unit_.Backward(context_);
  const auto loss = [&] { return Loss(); };
  constexpr float kDelta = 3e-3f;
  EXPECT_LT(
      GradientError(loss, unit_.input.span(), unit_.d_input.span(), kDelta),
      2e-3);
  EXPECT_LT(GradientError(loss, unit_.parameters.span(), unit_.gradients.span(),
                          kDelta),
            2e-3);
  if (GetParam().unit.index == 0) return;
  EXPECT_LT(GradientError(loss, unit_.tied_parameters.span(),
                          unit_.tied_gradients.span(), kDelta),
            2e-3)
      << "a unit that is not tied must not touch another's";
}

TEST_P(OpUnitTest, ARepeatedForwardIsTheSameBitForBit) {
  unit_.Forward(context_);
  const std::vector<float> output = Copy(unit_.output);
  const std::vector<float> stash = Copy(unit_.stash);
  unit_.Forward({.step = 6, .training = true});
  unit_.Forward(context_);
  EXPECT_EQ(Copy(unit_.output), output);
  EXPECT_TRUE(SameBits(Copy(unit_.stash), stash));
}

TEST_P(OpUnitTest, KeepsTheOutputsGradientForWhoeverReadsItNext) {
  const std::vector<float> d_output = Copy(unit_.d_output);
  const std::vector<float> input = Copy(unit_.input);
  unit_.Forward(context_);
  unit_.Backward(context_);
  EXPECT_EQ(Copy(unit_.d_output), d_output);
  EXPECT_EQ(Copy(unit_.input), input);
}

// A schedule may put the two passes apart, and use the workspace in between.
TEST_P(OpUnitTest, BackwardWeightNeedsNothingOfTheWorkspace) {
  unit_.Forward(context_);
  unit_.Backward(context_);
  const std::vector<float> gradients = Copy(unit_.gradients);
  std::fill(unit_.workspace.span().begin(), unit_.workspace.span().end(), 1e9f);
  unit_.gradients.Zero();
  unit_.unit->BackwardWeight(*unit_.device, context_, unit_.Buffers());
  EXPECT_EQ(Copy(unit_.gradients), gradients);
}

TEST_P(OpUnitTest, GradientsAddUpOrStartFromZero) {
  unit_.Forward(context_);
  unit_.Backward(context_);
  std::vector<float> twice = Copy(unit_.gradients);
  for (float& gradient : twice) gradient *= 2;
  MicroBatchContext context = context_;
  unit_.unit->BackwardWeight(*unit_.device, context, unit_.Buffers());
  EXPECT_LT(RelativeError(Copy(unit_.gradients), twice), 1e-5);
  unit_.gradients.Zero();
  context.gradients_are_zero = true;
  unit_.unit->BackwardWeight(*unit_.device, context, unit_.Buffers());
  unit_.unit->BackwardWeight(*unit_.device, context_, unit_.Buffers());
  EXPECT_LT(RelativeError(Copy(unit_.gradients), twice), 1e-5);
}

TEST_P(OpUnitTest, ValidationHasNoDropout) {
  unit_.Forward({.step = 5});
  UnitHarness without(GetParam().unit.units(0), GetParam().unit.index, 4);
  without.batch = SmallBatch();
  without.Forward({.step = 5});
  EXPECT_EQ(Copy(unit_.output), Copy(without.output));
  EXPECT_EQ(unit_.scalars[0], without.scalars[0]);
}

INSTANTIATE_TEST_SUITE_P(Units, OpUnitTest, testing::ValuesIn(Cases()),
                         [](const auto& info) {
                           return info.param.unit.name +
                                  (info.param.dropout > 0 ? "Masked" : "");
                         });

const SmallUnit& Named(const std::string& name) {
  static const auto* const units = new std::vector<SmallUnit>(SmallUnits());
  for (const SmallUnit& unit : *units) {
    if (unit.name == name) return unit;
  }
  CHECK(false) << name;
  return units->front();
}

TEST(HeadTest, TheLossAddsUpOverMicroBatches) {
  const SmallUnit& head = Named("Gpt2TiedHead");
  UnitHarness unit(head.units(0), head.index);
  unit.batch = SmallBatch();
  unit.Forward({.training = false});
  const double once = unit.scalars[0];
  EXPECT_EQ(unit.scalars[1], 6);
  unit.Forward({.training = false});
  EXPECT_DOUBLE_EQ(unit.scalars[0], 2 * once);
  EXPECT_EQ(unit.scalars[1], 12);
}

TEST(EmbeddingTest, ForwardAddsTheTwoTables) {
  const SmallUnit& embedding = Named("Gpt2Embedding");
  UnitHarness unit(embedding.units(0.3), embedding.index);
  unit.batch = SmallBatch();
  unit.Forward({.training = false});
  const float* wte = unit.parameters.floats();
  const float* wpe = wte + unit.spec.parameters(1).offset();
  constexpr int64_t kWidth = 6;
  for (int64_t row = 0; row < kSmallSequences * kSmallLength; ++row) {
    for (int64_t column = 0; column < kWidth; ++column) {
      EXPECT_EQ(unit.output.floats()[row * kWidth + column],
                wte[unit.batch[row] * kWidth + column] +
                    wpe[row % kSmallLength * kWidth + column]);
    }
  }
}

TEST(EmbeddingTest, TokensHaveNoGradient) {
  const SmallUnit& embedding = Named("Gpt2Embedding");
  UnitHarness unit(embedding.units(0), embedding.index);
  EXPECT_DEATH(unit.unit->BackwardInput(*unit.device, {}, unit.Buffers()),
               "tokens have no gradient");
}

}  // namespace
}  // namespace troupe
