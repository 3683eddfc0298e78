#include "ops/gelu.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class GeluTest : public OpTest {};

double ExactGeluOf(double x) { return 0.5 * x * (1 + std::erf(x / M_SQRT2)); }

double GeluOf(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST_P(GeluTest, ForwardAndBackward) {
  for (const DType dtype : ActivationTypes()) {
    for (int64_t n : {1, 3, 17, 65, 129, 40001}) {
      const Values x = Random(dtype, n, 2.0), dy = Random(dtype, n);
      Values want_y(n), want_dx(n);
      for (int64_t i = 0; i < n; ++i) {
        const double h = 1e-5;
        want_y[i] = GeluOf(x[i]);
        want_dx[i] = dy[i] * (GeluOf(x[i] + h) - GeluOf(x[i] - h)) / (2 * h);
      }
      const TestTensor tx(device(), {n}, x, dtype);
      const TestTensor tdy(device(), {n}, dy, dtype);
      const TestTensor y(device(), dtype, {n});
      Gelu(device(), {.x = tx, .y = y});
      EXPECT_LT(RelativeError(y.Read(), want_y), ErrorOf(dtype, 1e-6)) << n;
      GeluBackward(device(), {.x = tx, .dy = tdy, .dx = tdy});
      EXPECT_LT(RelativeError(tdy.Read(), want_dx), ErrorOf(dtype)) << n;
    }
  }
}

TEST_P(GeluTest, TheExactFormForwardAndBackward) {
  for (const DType dtype : ActivationTypes()) {
    for (int64_t n : {1, 3, 17, 65, 129, 40001}) {
      const Values x = Random(dtype, n, 2.0), dy = Random(dtype, n);
      Values want_y(n), want_dx(n);
      for (int64_t i = 0; i < n; ++i) {
        const double h = 1e-5;
        want_y[i] = ExactGeluOf(x[i]);
        want_dx[i] =
            dy[i] * (ExactGeluOf(x[i] + h) - ExactGeluOf(x[i] - h)) / (2 * h);
      }
      const TestTensor tx(device(), {n}, x, dtype);
      const TestTensor tdy(device(), {n}, dy, dtype);
      const TestTensor y(device(), dtype, {n});
      Gelu(device(), {.x = tx, .y = y, .exact = true});
      EXPECT_LT(RelativeError(y.Read(), want_y), ErrorOf(dtype, 1e-6)) << n;
      GeluBackward(device(), {.x = tx, .dy = tdy, .dx = tdy, .exact = true});
      EXPECT_LT(RelativeError(tdy.Read(), want_dx), ErrorOf(dtype)) << n;
    }
  }
}

// Rows of experts: each has a weight, whose gradient is what the row's y would
// be without it times dy; rows beyond the last offset are left alone.
TEST_P(GeluTest, WeightedRowsOfWhichSomeAreMissing) {
  struct Sizes {
    int64_t rows, present, n;
  };
  const Sizes sizes[] = {{1, 1, 1}, {5, 3, 17}, {130, 130, 129}, {65, 0, 770}};
  constexpr double kUntouched = 7;
  for (const DType dtype : ActivationTypes()) {
    for (const auto& [rows, present, n] : sizes) {
      const int64_t count = rows * n;
      const Values x = Random(dtype, count, 2.0), dy = Random(dtype, count);
      Values weights = Random(rows);
      weights[0] = 0;
      Values want_y(count, kUntouched), want_dx(count, kUntouched);
      Values want_weights(rows, kUntouched);
      for (int64_t row = 0; row < present; ++row) {
        want_weights[row] = 0;
        for (int64_t i = row * n; i < (row + 1) * n; ++i) {
          const double h = 1e-5;
          want_y[i] = weights[row] * GeluOf(x[i]);
          want_dx[i] = weights[row] * dy[i] *
                       (GeluOf(x[i] + h) - GeluOf(x[i] - h)) / (2 * h);
          want_weights[row] += dy[i] * GeluOf(x[i]);
        }
      }
      const TestTensor tx(device(), {rows, n}, x, dtype);
      const TestTensor tdy(device(), {rows, n}, dy, dtype);
      const TestTensor tweights(device(), {rows}, weights);
      const TestTensor offsets(device(), {3},
                               Values{0, 0, static_cast<double>(present)},
                               DType::kI32);
      const Values untouched(count, kUntouched);
      const TestTensor y(device(), {rows, n}, untouched, dtype);
      const TestTensor dx(device(), {rows, n}, untouched, dtype);
      const TestTensor d_weights(device(), {rows}, Values(rows, kUntouched));
      Gelu(device(),
           {.x = tx, .y = y, .weights = tweights, .offsets = offsets});
      EXPECT_LT(RelativeError(y.Read(), want_y), ErrorOf(dtype, 1e-6)) << n;
      GeluBackward(device(), {.x = tx,
                              .dy = tdy,
                              .dx = dx,
                              .weights = tweights,
                              .d_weights = d_weights,
                              .offsets = offsets});
      EXPECT_LT(RelativeError(dx.Read(), want_dx), ErrorOf(dtype)) << n;
      EXPECT_LT(RelativeError(d_weights.Read(), want_weights), kF32Error) << n;
    }
  }
}

TEST_P(GeluTest, FarOutAndNotANumber) {
  for (const auto& [dtype, exact] : {std::pair{DType::kF32, false},
                                     {DType::kBF16, false},
                                     {DType::kF32, true},
                                     {DType::kBF16, true}}) {
    const Values x = AsStored(dtype, {-1e30, -100, -12, 0, 12, 100, 1e30, NAN});
    const TestTensor tx(device(), {8}, x, dtype);
    const TestTensor ones(device(), {8}, Values(8, 1.0), dtype);
    const TestTensor y(device(), dtype, {8});
    Gelu(device(), {.x = tx, .y = y, .exact = exact});
    const Values got = y.Read();
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(got[i], 0, 1e-7) << i;
    for (int i = 3; i < 7; ++i) EXPECT_EQ(got[i], x[i]) << i;
    EXPECT_TRUE(std::isnan(got[7]));
    GeluBackward(device(), {.x = tx, .dy = ones, .dx = y, .exact = exact});
    EXPECT_EQ(y.Read()[6], 1.0);
    EXPECT_NEAR(y.Read()[1], 0.0, 1e-7);
    EXPECT_TRUE(std::isnan(y.Read()[7]));
  }
}

TROUPE_ON_EACH_DEVICE(GeluTest);

}  // namespace
}  // namespace troupe
