#include "ops/average.h"

#include <cmath>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class AverageTest : public OpTest {};

// Bit for bit: products of numbers of 24 bits are exact in f64.
TEST_P(AverageTest, IsThatOfAPlainLoop) {
  for (const double decay : {0.0, 0.5, 0.9, 0.999, 0.99999}) {
    for (const int64_t n : {1, 17, 129, 40003}) {
      Values average = AsStored(DType::kF32, Random(n));
      const TestTensor tensor(device(), {n}, average);
      const double kept = std::ldexp(std::round(std::ldexp(decay, 24)), -24);
      const double taken = 1 - kept;
      for (int step = 1; step <= 4; ++step) {
        const Values weights = AsStored(DType::kF32, Random(n));
        for (int64_t i = 0; i < n; ++i) {
          average[i] =
              static_cast<float>(kept * average[i] + taken * weights[i]);
        }
        const TestTensor of_step(device(), {n}, weights);
        Average(device(),
                {.weights = of_step, .average = tensor, .decay = decay});
        EXPECT_EQ(of_step.Read(), weights);
      }
      EXPECT_EQ(tensor.Read(), average) << decay << ", " << n;
    }
  }
}

// Factors that do not add up to 1 would shrink or stretch what stands still.
TEST_P(AverageTest, WeightsThatDoNotChangeAreTheirAverage) {
  const int64_t n = 1000;
  const Values weights = AsStored(DType::kF32, Random(n));
  const TestTensor w(device(), {n}, weights);
  for (const double decay : {2.0 / 11, 0.3, 0.9, 0.999, 0.99999, 0.999999}) {
    const TestTensor average(device(), {n}, weights);
    for (int step = 0; step < 100; ++step) {
      Average(device(), {.weights = w, .average = average, .decay = decay});
    }
    EXPECT_EQ(average.Read(), weights) << decay;
  }
}

TEST_P(AverageTest, PartsOfAFlatBufferAreAveragedAlike) {
  const int64_t n = 1000;
  const Values weights = Random(n), average = Random(n);
  const TestTensor w(device(), {n}, weights);
  const auto update = [&](const std::vector<int64_t>& cuts) {
    const TestTensor a(device(), {n}, average);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      Average(device(), {.weights = w.tensor().Slice(0, cuts[i], cuts[i + 1]),
                         .average = a.tensor().Slice(0, cuts[i], cuts[i + 1]),
                         .decay = 0.99});
    }
    return a.Read();
  };
  EXPECT_EQ(update({0, n}), update({0, 1, 333, 700, 703, n}));
}

TROUPE_ON_EACH_DEVICE(AverageTest);

}  // namespace
}  // namespace troupe
