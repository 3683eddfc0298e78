#include "worker/model/initialize.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/plan/model.h"
#include "proto/plan/slices.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

std::vector<float> Weights(const Unit& unit, uint64_t seed, int threads = 1) {
  const auto device = NewCpuDevice({.threads = threads});
  DeviceMemory flat(*device, unit.flat_elements() * 4);
  InitializeParameters(*device, unit, {.seed = seed}, flat.get());
  return {flat.span().begin(), flat.span().end()};
}

std::vector<Unit> Units(MicroBatchShape shape = {.sequences = 1,
                                                 .sequence_length = 5}) {
  return ModelUnits(Gpt2Model({.hidden = 48, .intermediate = 191}), shape)
      ->units;
}

TEST(InitializeTest, FollowsEachParametersDistribution) {
  for (const Unit& unit : Units()) {
    const std::vector<float> flat = Weights(unit, 3);
    int64_t end = 0;
    for (const Parameter& parameter : unit.parameters()) {
      SCOPED_TRACE(parameter.name());
      for (; end < parameter.offset(); ++end) EXPECT_EQ(flat[end], 0);
      int64_t elements = 1;
      for (const int64_t dim : WholeShape(parameter)) elements *= dim;
      end += elements;
      double sum = 0, squares = 0;
      for (int64_t i = end - elements; i < end; ++i) {
        sum += flat[i];
        squares += static_cast<double>(flat[i]) * flat[i];
      }
      const double n = static_cast<double>(elements);
      if (parameter.init() == Parameter::ONES) {
        EXPECT_EQ(sum, n);
      }
      if (parameter.init() == Parameter::ZEROS) {
        EXPECT_EQ(squares, 0);
      }
      if (parameter.init() != Parameter::NORMAL) continue;
      const double std = parameter.init_std();
      EXPECT_NEAR(sum / n / std, 0, 5 / std::sqrt(n));
      EXPECT_NEAR(std::sqrt(squares / n) / std, 1, 5 / std::sqrt(2 * n));
    }
  }
}

TEST(InitializeTest, DependsOnTheSeedAndTheParameterOnly) {
  const std::vector<Unit> units = Units();
  const std::vector<float> once = Weights(units[1], 3);
  EXPECT_EQ(once, Weights(Units({.sequences = 4, .sequence_length = 9})[1], 3,
                          /*threads=*/2));
  EXPECT_NE(once, Weights(units[1], 4));
  EXPECT_NE(once, Weights(units[2], 3));
}

// 1 + 2^-8 is half way between two numbers of bf16, 1 the even one.
TEST(InitializeTest, RoundsToTheNearestEven) {
  const auto device = NewCpuDevice({.threads = 1});
  const Unit unit = UnitWith({{"a", {4}}});
  DeviceMemory weights(*device, unit.flat_elements() * 4);
  DeviceMemory parameters(*device, unit.flat_elements() * 2);
  weights.Zero();
  weights.floats()[0] = 1 + 1.0f / 256;
  weights.floats()[1] = 1 + 3.0f / 256;
  weights.floats()[2] = -2.71828f;
  RoundParameters(*device, unit.flat_elements(),
                  {.weights = weights.get(), .parameters = parameters.get()});
  const auto* bits = static_cast<const uint16_t*>(parameters.get());
  EXPECT_EQ(bits[0], 0x3f80);  // 1
  EXPECT_EQ(bits[1], 0x3f82);  // 1 + 4/256
  EXPECT_EQ(bits[2], 0xc02e);  // -2.71875
  EXPECT_EQ(bits[3], 0);
}

}  // namespace
}  // namespace troupe
