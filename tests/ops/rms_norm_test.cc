#include "ops/rms_norm.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class RmsNormTest : public OpTest {};

constexpr double kEpsilon = 1e-5;

struct Sizes {
  int64_t rows, n;
};
const Sizes kSizes[] = {{1, 3}, {3, 17}, {17, 65}, {65, 129}, {129, 770}};

double RstdOf(const double* s, int64_t n) {
  double mean_square = 0;
  for (int64_t i = 0; i < n; ++i) mean_square += s[i] * s[i] / n;
  return 1 / std::sqrt(mean_square + kEpsilon);
}

Values RstdOfRows(const Sizes& size, const Values& s) {
  Values rstd;
  for (int64_t r = 0; r < size.rows; ++r) {
    rstd.push_back(RstdOf(&s[r * size.n], size.n));
  }
  return rstd;
}

Values Normalised(const Sizes& size, const Values& s, const Values& gamma) {
  const Values rstd = RstdOfRows(size, s);
  Values y(s.size());
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = s[i] * rstd[i / size.n] * gamma[i % size.n];
  }
  return y;
}

TEST_P(RmsNormTest, ForwardWithResidual) {
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& size : kSizes) {
      const std::vector<int64_t> dims = {size.rows, size.n};
      const Values x = Random(dtype, size.rows * size.n, 2.0);
      const Values residual = Random(dtype, size.rows * size.n);
      const Values gamma = Random(dtype, size.n);
      Values s(x.size());
      for (size_t i = 0; i < x.size(); ++i) s[i] = x[i] + residual[i];
      s = AsStored(dtype, s);
      const TestTensor tx(device(), dims, x, dtype);
      const TestTensor tr(device(), dims, residual, dtype);
      const TestTensor tg(device(), {size.n}, gamma, dtype);
      const TestTensor ty(device(), dtype, dims);
      const TestTensor trstd(device(), DType::kF32, {size.rows});
      RmsNorm(device(), {.x = tx,
                         .residual = tr,
                         .sum = tr,
                         .gamma = tg,
                         .y = ty,
                         .rstd = trstd});
      EXPECT_EQ(tr.Read(), s);
      EXPECT_LT(RelativeError(ty.Read(), Normalised(size, s, gamma)),
                ErrorOf(dtype))
          << size.n;
      EXPECT_LT(RelativeError(trstd.Read(), RstdOfRows(size, s)), kF32Error);
      // Without a residual, of the sum, in place: the same.
      RmsNorm(device(), {.x = tr, .gamma = tg, .y = tr});
      EXPECT_EQ(tr.Read(), ty.Read());
    }
  }
}

// Derivatives of sum(y * dy), a scalar.
TEST_P(RmsNormTest, BackwardByFiniteDifferences) {
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& size : {Sizes{1, 3}, Sizes{3, 17}, Sizes{7, 65}}) {
      const std::vector<int64_t> dims = {size.rows, size.n};
      const int64_t count = size.rows * size.n;
      const Values s = Random(dtype, count), dy = Random(dtype, count);
      const Values gamma = Random(dtype, size.n);
      const auto objective = [&](const Values& at_s, const Values& at_gamma) {
        const Values y = Normalised(size, at_s, at_gamma);
        double sum = 0;
        for (int64_t i = 0; i < count; ++i) sum += y[i] * dy[i];
        return sum;
      };
      const Values incoming = Random(dtype, count);
      const Values before = Random(dtype, size.n);
      Values dx = incoming, dgamma = before;
      for (int64_t i = 0; i < count; ++i) {
        Values up = s, down = s;
        up[i] += 1e-5;
        down[i] -= 1e-5;
        dx[i] += (objective(up, gamma) - objective(down, gamma)) / 2e-5;
      }
      for (int64_t i = 0; i < size.n; ++i) {
        Values up = gamma, down = gamma;
        up[i] += 1e-5;
        down[i] -= 1e-5;
        dgamma[i] += (objective(s, up) - objective(s, down)) / 2e-5;
      }
      const TestTensor ts(device(), dims, s, dtype);
      const TestTensor tdy(device(), dims, dy, dtype);
      const TestTensor tin(device(), dims, incoming, dtype);
      const TestTensor tg(device(), {size.n}, gamma, dtype);
      const TestTensor trstd(device(), {size.rows}, RstdOfRows(size, s));
      for (const DType of_gradient : GradientTypes(dtype)) {
        const TestTensor tdg(device(), {size.n}, before, of_gradient);
        RmsNormBackwardWeight(
            device(), {.dy = tdy, .s = ts, .rstd = trstd, .dgamma = tdg});
        EXPECT_LT(RelativeError(tdg.Read(), dgamma), ErrorOf(of_gradient))
            << size.n;
      }
      RmsNormBackwardInput(device(), {.dy = tdy,
                                      .s = ts,
                                      .gamma = tg,
                                      .rstd = trstd,
                                      .residual_gradient = tin,
                                      .dx = tdy});
      EXPECT_LT(RelativeError(tdy.Read(), dx), ErrorOf(dtype)) << size.n;
    }
  }
}

TEST_P(RmsNormTest, BackwardOverManyRows) {
  const Sizes size{1027, 200};
  for (const DType dtype : ActivationTypes()) {
    const std::vector<int64_t> dims = {size.rows, size.n};
    const Values s = Random(dtype, size.rows * size.n);
    const Values dy = Random(dtype, s.size()), gamma = Random(dtype, size.n);
    const Values rstd = RstdOfRows(size, s);
    Values dgamma(size.n), dx(s.size()), mean(size.rows);
    for (size_t i = 0; i < s.size(); ++i) {
      const double h = s[i] * rstd[i / size.n];
      dgamma[i % size.n] += dy[i] * h;
      mean[i / size.n] += dy[i] * gamma[i % size.n] * h / size.n;
    }
    for (size_t i = 0; i < s.size(); ++i) {
      const int64_t row = i / size.n;
      dx[i] = rstd[row] *
              (dy[i] * gamma[i % size.n] - s[i] * rstd[row] * mean[row]);
    }
    const TestTensor ts(device(), dims, s, dtype);
    const TestTensor tdy(device(), dims, dy, dtype);
    const TestTensor tg(device(), {size.n}, gamma, dtype);
    const TestTensor trstd(device(), {size.rows}, rstd);
    const TestTensor tdg(device(), {size.n}, Values(size.n));
    const TestTensor tdx(device(), dtype, dims);
    RmsNormBackwardWeight(device(),
                          {.dy = tdy, .s = ts, .rstd = trstd, .dgamma = tdg});
    EXPECT_LT(RelativeError(tdg.Read(), dgamma), kF32Error);
    RmsNormBackwardInput(
        device(), {.dy = tdy, .s = ts, .gamma = tg, .rstd = trstd, .dx = tdx});
    EXPECT_LT(RelativeError(tdx.Read(), dx), ErrorOf(dtype));
  }
}

// Some heads of each row: as if they were copied out, and nothing else changes.
TEST_P(RmsNormTest, SlicesOfHeads) {
  constexpr int64_t kBatch = 2, kTime = 5, kAll = 7, kFirst = 2, kHeads = 3;
  for (const DType dtype : ActivationTypes()) {
    for (const int64_t n : {5, 16, 64}) {
      const std::vector<int64_t> dims = {kBatch, kTime, kAll * n};
      const int64_t rows = kBatch * kTime * kHeads;
      const auto sliced = [&](const TestTensor& all) {
        return all.tensor()
            .View({kBatch, kTime, kAll, n})
            .Slice(2, kFirst, kFirst + kHeads);
      };
      const auto taken = [&](const Values& all) {
        Values some;
        for (size_t i = 0; i < all.size(); ++i) {
          const int64_t head = static_cast<int64_t>(i) / n % kAll;
          if (head >= kFirst && head < kFirst + kHeads) some.push_back(all[i]);
        }
        return some;
      };
      const Values x = Random(dtype, kBatch * kTime * kAll * n, 2.0);
      const Values dy = Random(dtype, x.size()), gamma = Random(dtype, n);
      const Values before = Random(n);
      const TestTensor tx(device(), dims, x, dtype),
          ty(device(), dims, x, dtype);
      const TestTensor tdy(device(), dims, dy, dtype);
      const TestTensor tdx(device(), dims, dy, dtype);
      const TestTensor tg(device(), {n}, gamma, dtype);
      const TestTensor trstd(device(), DType::kF32, {rows});
      const TestTensor tdg(device(), {n}, before);
      RmsNorm(device(), {.x = sliced(tx),
                         .gamma = tg,
                         .epsilon = kEpsilon,
                         .y = sliced(ty),
                         .rstd = trstd});
      RmsNormBackwardInput(device(), {.dy = sliced(tdy),
                                      .s = sliced(tx),
                                      .gamma = tg,
                                      .rstd = trstd,
                                      .dx = sliced(tdx)});
      RmsNormBackwardWeight(
          device(),
          {.dy = sliced(tdy), .s = sliced(tx), .rstd = trstd, .dgamma = tdg});
      const Sizes size = {rows, n};
      const Values s = taken(x), g = taken(dy), rstd = RstdOfRows(size, s);
      EXPECT_LT(RelativeError(trstd.Read(), rstd), kF32Error) << n;
      EXPECT_LT(RelativeError(taken(ty.Read()), Normalised(size, s, gamma)),
                ErrorOf(dtype))
          << n;
      Values dx(s.size()), dgamma = before, mean(rows);
      for (size_t i = 0; i < s.size(); ++i) {
        const double h = s[i] * rstd[i / n];
        dgamma[i % n] += g[i] * h;
        mean[i / n] += g[i] * gamma[i % n] * h / static_cast<double>(n);
      }
      for (size_t i = 0; i < s.size(); ++i) {
        const int64_t row = static_cast<int64_t>(i) / n;
        dx[i] =
            rstd[row] * (g[i] * gamma[i % n] - s[i] * rstd[row] * mean[row]);
      }
      EXPECT_LT(RelativeError(taken(tdx.Read()), dx), ErrorOf(dtype)) << n;
      EXPECT_LT(RelativeError(tdg.Read(), dgamma), kF32Error) << n;
      const Values y = ty.Read(), all_dx = tdx.Read();
      for (size_t i = 0; i < x.size(); ++i) {
        const int64_t head = static_cast<int64_t>(i) / n % kAll;
        if (head >= kFirst && head < kFirst + kHeads) continue;
        ASSERT_EQ(y[i], x[i]) << i;
        ASSERT_EQ(all_dx[i], dy[i]) << i;
      }
    }
  }
}

TEST_P(RmsNormTest, DropoutOfTheBranchIsApplyDropout) {
  const std::vector<int64_t> dims = {33, 65};
  const DropoutMask mask{.probability = 0.3f,
                         .stream = {.seed = 5, .step = 2},
                         .first_element = 1001};
  for (const DType dtype : ActivationTypes()) {
    const TestTensor x(device(), dims, Random(33 * 65), dtype);
    const TestTensor residual(device(), dims, Random(33 * 65), dtype);
    const TestTensor gamma(device(), {65}, Random(65), dtype);
    const TestTensor sum(device(), dtype, dims), y(device(), dtype, dims);
    RmsNorm(device(), {.x = x,
                       .residual = residual,
                       .sum = sum,
                       .dropout = mask,
                       .gamma = gamma,
                       .y = y});
    ApplyDropout(device(),
                 {.x = x, .residual = residual, .y = y, .mask = mask});
    EXPECT_EQ(sum.Read(), y.Read());
  }
}

TROUPE_ON_EACH_DEVICE(RmsNormTest);

}  // namespace
}  // namespace troupe
