#include "ops/swiglu.h"

#include <algorithm>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class SwiGluTest : public OpTest {};

struct Sizes {
  int64_t rows, n;
};
const Sizes kSizes[] = {{1, 1}, {3, 17}, {5, 65}, {130, 129}, {65, 770}};

double Silu(double x) { return x / (1 + std::exp(-x)); }

// One [rows, 2n] tensor holds gate and up as its halves.
Values Halves(const Sizes& size, const Values& gate, const Values& up) {
  Values both(gate.size() * 2);
  for (int64_t r = 0; r < size.rows; ++r) {
    for (int64_t i = 0; i < size.n; ++i) {
      both[r * 2 * size.n + i] = gate[r * size.n + i];
      both[(r * 2 + 1) * size.n + i] = up[r * size.n + i];
    }
  }
  return both;
}

TEST_P(SwiGluTest, HalvesOfOneTensorForwardAndBackwardInPlace) {
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& size : kSizes) {
      const int64_t count = size.rows * size.n;
      const Values gate = Random(dtype, count, 3.0), up = Random(dtype, count);
      const Values dy = Random(dtype, count);
      Values want_y(count), want_gate(count), want_up(count);
      for (int64_t i = 0; i < count; ++i) {
        const double h = 1e-5;
        want_y[i] = Silu(gate[i]) * up[i];
        want_gate[i] =
            dy[i] * up[i] * (Silu(gate[i] + h) - Silu(gate[i] - h)) / (2 * h);
        want_up[i] = dy[i] * Silu(gate[i]);
      }
      const TestTensor both(device(), {size.rows, 2 * size.n},
                            Halves(size, gate, up), dtype);
      const Tensor tgate = both.tensor().Slice(1, 0, size.n);
      const Tensor tup = both.tensor().Slice(1, size.n, 2 * size.n);
      const TestTensor y(device(), dtype, {size.rows, size.n});
      SwiGlu(device(), {.gate = tgate, .up = tup, .y = y});
      EXPECT_LT(RelativeError(y.Read(), want_y), ErrorOf(dtype)) << size.n;
      const TestTensor tdy(device(), {size.rows, size.n}, dy, dtype);
      SwiGluBackward(
          device(),
          {.gate = tgate, .up = tup, .dy = tdy, .d_gate = tgate, .d_up = tup});
      EXPECT_LT(RelativeError(both.Read(), Halves(size, want_gate, want_up)),
                ErrorOf(dtype))
          << size.n;
    }
  }
}

// The weight of a row in front of the down product, and its gradient, which is
// what the row's y would be without weight times dy.
TEST_P(SwiGluTest, WeightedRows) {
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& size : kSizes) {
      const int64_t count = size.rows * size.n;
      const Values gate = Random(dtype, count, 3.0), up = Random(dtype, count);
      const Values dy = Random(dtype, count);
      Values weights = Random(size.rows);
      weights[0] = 0;
      Values want_y(count), want_gate(count), want_up(count);
      Values want_weights(size.rows);
      for (int64_t i = 0; i < count; ++i) {
        const double h = 1e-5, w = weights[i / size.n];
        want_y[i] = w * Silu(gate[i]) * up[i];
        want_gate[i] = w * dy[i] * up[i] *
                       (Silu(gate[i] + h) - Silu(gate[i] - h)) / (2 * h);
        want_up[i] = w * dy[i] * Silu(gate[i]);
        want_weights[i / size.n] += dy[i] * Silu(gate[i]) * up[i];
      }
      const TestTensor tgate(device(), {size.rows, size.n}, gate, dtype);
      const TestTensor tup(device(), {size.rows, size.n}, up, dtype);
      const TestTensor tdy(device(), {size.rows, size.n}, dy, dtype);
      const TestTensor tweights(device(), {size.rows}, weights);
      const TestTensor y(device(), dtype, {size.rows, size.n});
      SwiGlu(device(), {.gate = tgate, .up = tup, .y = y, .weights = tweights});
      EXPECT_LT(RelativeError(y.Read(), want_y), ErrorOf(dtype)) << size.n;
      const TestTensor d_weights(device(), DType::kF32, {size.rows});
      SwiGluBackward(device(), {.gate = tgate,
                                .up = tup,
                                .dy = tdy,
                                .d_gate = tgate,
                                .d_up = tup,
                                .weights = tweights,
                                .d_weights = d_weights});
      EXPECT_LT(RelativeError(tgate.Read(), want_gate), ErrorOf(dtype));
      EXPECT_LT(RelativeError(tup.Read(), want_up), ErrorOf(dtype));
      EXPECT_LT(RelativeError(d_weights.Read(), want_weights), kF32Error)
          << size.n;
    }
  }
}

// A row of weight 1 is one without, bit for bit; and of many rows each has its
// own weight's gradient, however they are cut over threads.
TEST_P(SwiGluTest, WeightOneChangesNothing) {
  const int64_t rows = 300, n = 131;
  for (const DType dtype : ActivationTypes()) {
    const TestTensor gate(device(), {rows, n}, Random(dtype, rows * n), dtype);
    const TestTensor up(device(), {rows, n}, Random(dtype, rows * n), dtype);
    const TestTensor dy(device(), {rows, n}, Random(dtype, rows * n), dtype);
    const TestTensor ones(device(), {rows}, Values(rows, 1.0));
    const TestTensor y(device(), dtype, {rows, n});
    const TestTensor d_gate(device(), dtype, {rows, n});
    const TestTensor d_up(device(), dtype, {rows, n});
    const TestTensor d_weights(device(), DType::kF32, {rows});
    SwiGluArgs forward = {.gate = gate, .up = up, .y = y};
    SwiGluBackwardArgs backward = {
        .gate = gate, .up = up, .dy = dy, .d_gate = d_gate, .d_up = d_up};
    SwiGlu(device(), forward);
    SwiGluBackward(device(), backward);
    const std::vector<Values> plain = {y.Read(), d_gate.Read(), d_up.Read()};
    forward.weights = ones;
    backward.weights = ones;
    backward.d_weights = d_weights;
    SwiGlu(device(), forward);
    SwiGluBackward(device(), backward);
    EXPECT_EQ(plain, (std::vector{y.Read(), d_gate.Read(), d_up.Read()}));
  }
}

// Rows that groups fill are as they are without offsets; those beyond stay.
TEST_P(SwiGluTest, RowsBeyondTheGroupsAreLeftAlone) {
  const int64_t rows = 9, n = 131;
  for (const DType dtype : ActivationTypes()) {
    for (const bool weighted : {false, true}) {
      for (const int64_t present : {0, 1, 5, 9}) {
        const TestTensor offsets(
            device(), {3},
            {0, static_cast<double>(present / 2), static_cast<double>(present)},
            DType::kI32);
        const Values before = Random(dtype, rows * n);
        const Values gate = Random(dtype, rows * n), up = before;
        const Values of_rows = Random(rows);
        const TestTensor tgate(device(), {rows, n}, gate, dtype);
        const TestTensor tup(device(), {rows, n}, up, dtype);
        const TestTensor dy(device(), {rows, n}, Random(dtype, rows * n),
                            dtype);
        const TestTensor weights(device(), {rows}, of_rows);
        std::vector<std::vector<Values>> results;
        for (const bool grouped : {false, true}) {
          const TestTensor y(device(), {rows, n}, before, dtype);
          const TestTensor d_gate(device(), {rows, n}, before, dtype);
          const TestTensor d_up(device(), {rows, n}, before, dtype);
          const TestTensor d_weights(device(), {rows}, of_rows);
          SwiGluArgs forward = {.gate = tgate, .up = tup, .y = y};
          SwiGluBackwardArgs backward = {.gate = tgate,
                                         .up = tup,
                                         .dy = dy,
                                         .d_gate = d_gate,
                                         .d_up = d_up};
          if (weighted) {
            forward.weights = backward.weights = weights;
            backward.d_weights = d_weights;
          }
          if (grouped) forward.offsets = backward.offsets = offsets;
          SwiGlu(device(), forward);
          SwiGluBackward(device(), backward);
          results.push_back(
              {y.Read(), d_gate.Read(), d_up.Read(), d_weights.Read()});
        }
        for (size_t t = 0; t < results[0].size(); ++t) {
          const int64_t columns = t < 3 ? n : 1;
          Values want = t < 3 ? before : of_rows;
          std::copy_n(results[0][t].begin(), present * columns, want.begin());
          EXPECT_EQ(results[1][t], want) << t;
        }
      }
    }
  }
}

TEST_P(SwiGluTest, WeightsWithoutTheirGradientDie) {
  const TestTensor x(device(), {2, 3}, Random(6));
  const TestTensor dx(device(), DType::kF32, {2, 3});
  EXPECT_DEATH(
      SwiGluBackward(
          device(),
          {.gate = x, .up = x, .dy = x, .d_gate = x, .d_up = dx, .weights = x}),
      "weights");
}

// Where things lie changes no bit.
TEST_P(SwiGluTest, DenseTensorsOverlaidInAnyWay) {
  const int64_t n = 1037;
  for (const DType dtype : ActivationTypes()) {
    const Values gate = Random(dtype, n), up = Random(dtype, n);
    const Values dy = Random(dtype, n);
    const TestTensor tgate(device(), {1, n}, gate, dtype);
    TestTensor tup(device(), {1, n}, up, dtype);
    const TestTensor tdy(device(), {1, n}, dy, dtype);
    const TestTensor y(device(), dtype, {1, n});
    const TestTensor d_gate(device(), dtype, {1, n});
    const TestTensor d_up(device(), dtype, {1, n});
    SwiGlu(device(), {.gate = tgate, .up = tup, .y = y});
    SwiGluBackward(
        device(),
        {.gate = tgate, .up = tup, .dy = tdy, .d_gate = d_gate, .d_up = d_up});
    SwiGluBackward(
        device(),
        {.gate = tgate, .up = tup, .dy = tdy, .d_gate = tup, .d_up = tdy});
    EXPECT_EQ(tup.Read(), d_gate.Read());
    EXPECT_EQ(tdy.Read(), d_up.Read());
    tup.Write(up);
    SwiGlu(device(), {.gate = tgate, .up = tup, .y = tup});
    EXPECT_EQ(tup.Read(), y.Read());
  }
}

TEST_P(SwiGluTest, FarOutAndNotANumber) {
  for (const DType dtype : ActivationTypes()) {
    const double most = dtype == DType::kF16 ? 65504 : 3e38;
    const Values gate =
        AsStored(dtype, {-INFINITY, -most, -1000, -90, 0, 90, 1000, most, NAN});
    const int64_t n = static_cast<int64_t>(gate.size());
    const TestTensor tgate(device(), {n}, gate, dtype);
    const TestTensor ones(device(), {n}, Values(n, 1.0), dtype);
    const TestTensor y(device(), dtype, {n});
    const TestTensor d_up(device(), dtype, {n});
    SwiGlu(device(), {.gate = tgate, .up = ones, .y = y});
    SwiGluBackward(
        device(),
        {.gate = tgate, .up = ones, .dy = ones, .d_gate = tgate, .d_up = d_up});
    const Values got = y.Read(), slope = tgate.Read();
    for (int i = 0; i < n - 1; ++i) {
      const bool left = gate[i] < 0;
      EXPECT_NEAR(got[i], left ? 0 : gate[i], 1e-30) << gate[i];
      EXPECT_NEAR(slope[i],
                  left           ? 0
                  : gate[i] == 0 ? 0.5
                                 : 1,
                  1e-30)
          << gate[i];
    }
    EXPECT_EQ(d_up.Read()[n - 2], got[n - 2]);
    EXPECT_TRUE(std::isnan(got[n - 1]));
    EXPECT_TRUE(std::isnan(slope[n - 1]));
  }
}

TROUPE_ON_EACH_DEVICE(SwiGluTest);

}  // namespace
}  // namespace troupe
