#include "ops/int4.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class Int4Test : public OpTest {};

// What comes back, by double precision.
Values ReferenceOf(const Values& values) {
  Values back = values;
  for (size_t first = 0; first < values.size(); first += kInt4Block) {
    const size_t end = std::min(values.size(), first + kInt4Block);
    float largest = 0;
    for (size_t i = first; i < end; ++i) {
      largest = std::max(largest, std::abs(static_cast<float>(values[i])));
    }
    const float scale = largest / 7;
    for (size_t i = first; i < end; ++i) {
      const double number =
          scale == 0 ? 0
                     : std::nearbyint(static_cast<float>(values[i]) / scale);
      back[i] = static_cast<float>(std::clamp(number, -7.0, 7.0) * scale);
    }
  }
  return back;
}

TEST_P(Int4Test, ComesBackAsTheNearestMultipleOfTheScale) {
  for (const int64_t n : {1, 2, 63, 64, 65, 129, 40003}) {
    const Values values = AsStored(DType::kF32, Random(n));
    const TestTensor x(device(), {n}, values);
    const TestTensor compressed(device(), {Int4Words(n)},
                                Values(Int4Words(n), 0));
    ToInt4(device(), {.elements = x, .compressed = compressed});
    EXPECT_EQ(x.Read(), values);
    const TestTensor back(device(), {n}, Values(n, 5));
    FromInt4(device(), {.elements = back, .compressed = compressed});
    EXPECT_EQ(back.Read(), ReferenceOf(values)) << n;
  }
}

// Zeros stay zeros, the largest of a block itself, and nothing is further away
// than half a step.
TEST_P(Int4Test, IsExactWhereItCanBe) {
  constexpr int64_t kN = 128;
  Values values(kN, 0);
  for (int64_t i = 64; i < kN; ++i) {
    values[i] = static_cast<double>(i % 15) - 7;
  }
  const TestTensor x(device(), {kN}, values);
  const TestTensor compressed(device(), {Int4Words(kN)},
                              Values(Int4Words(kN), 0));
  ToInt4(device(), {.elements = x, .compressed = compressed});
  const TestTensor back(device(), {kN}, Values(kN, 5));
  FromInt4(device(), {.elements = back, .compressed = compressed});
  EXPECT_EQ(back.Read(), values);
}

TEST_P(Int4Test, WhatIsNotFiniteIsFoundInAllOfItsBlock) {
  for (const double bad : {std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    constexpr int64_t kN = 192;
    Values values(kN, 1);
    values[100] = bad;
    const TestTensor x(device(), {kN}, values);
    const TestTensor compressed(device(), {Int4Words(kN)},
                                Values(Int4Words(kN), 0));
    ToInt4(device(), {.elements = x, .compressed = compressed});
    const TestTensor back(device(), {kN}, Values(kN, 5));
    FromInt4(device(), {.elements = back, .compressed = compressed});
    const Values got = back.Read();
    for (int64_t i = 0; i < kN; ++i) {
      EXPECT_EQ(std::isnan(got[i]), i / 64 == 1) << i;
    }
  }
}

TROUPE_ON_EACH_DEVICE(Int4Test);

}  // namespace
}  // namespace troupe
