#include "ops/random.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class RandomTest : public OpTest {};

const PhiloxStream kStream{.seed = 11, .site = 6};

TEST_P(RandomTest, MomentsOfTheNormal) {
  const int64_t n = 200000;
  const TestTensor x(device(), DType::kF32, {n});
  FillNormal(
      device(),
      {.x = x, .mean = 2.0f, .standard_deviation = 0.5f, .stream = kStream});
  double sum = 0, squares = 0, cubes = 0, outside = 0;
  for (double v : x.Read()) {
    const double z = (v - 2) / 0.5;
    sum += z;
    squares += z * z;
    cubes += z * z * z;
    outside += std::abs(z) > 1.959964;
  }
  EXPECT_NEAR(sum / n, 0, 0.012);
  EXPECT_NEAR(squares / n, 1, 0.017);
  EXPECT_NEAR(cubes / n, 0, 0.045);
  EXPECT_NEAR(outside / n, 0.05, 0.0025);
}

TEST_P(RandomTest, ShardsAreSlicesOfTheWhole) {
  const TestTensor whole(device(), DType::kF32, {1003});
  FillNormal(device(), {.x = whole, .stream = kStream});
  const TestTensor parts(device(), DType::kF32, {1003});
  for (int64_t begin = 0; begin < 1003; begin += 101) {
    FillNormal(device(), {.x = parts.tensor().Slice(
                              0, begin, std::min<int64_t>(begin + 101, 1003)),
                          .stream = kStream,
                          .first_index = static_cast<uint64_t>(begin)});
  }
  EXPECT_EQ(whole.Read(), parts.Read());
}

TEST_P(RandomTest, ElementsAsDocumented) {
  const TestTensor x(device(), DType::kF32, {2});
  FillNormal(device(), {.x = x, .stream = kStream, .first_index = 6});
  const double u = ((PhiloxUint32(kStream, 6) >> 8) + 1) / 16777216.0;
  const double w = (PhiloxUint32(kStream, 7) >> 8) / 16777216.0;
  const double radius = std::sqrt(-2 * std::log(u));
  EXPECT_NEAR(x.Read()[0], radius * std::cos(2 * M_PI * w), 1e-6);
  EXPECT_NEAR(x.Read()[1], radius * std::sin(2 * M_PI * w), 1e-6);
}

TROUPE_ON_EACH_DEVICE(RandomTest);

}  // namespace
}  // namespace troupe
