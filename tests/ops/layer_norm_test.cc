#include "ops/layer_norm.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class LayerNormTest : public OpTest {};

constexpr double kEpsilon = 1e-5;

struct Sizes {
  int64_t rows, n;
};
const Sizes kSizes[] = {{1, 3}, {3, 17}, {17, 65}, {65, 129}, {129, 770}};

struct Statistics {
  double mean, rstd;
};

Statistics Of(const double* s, int64_t n) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) mean += s[i] / n;
  for (int64_t i = 0; i < n; ++i) variance += (s[i] - mean) * (s[i] - mean) / n;
  return {mean, 1 / std::sqrt(variance + kEpsilon)};
}

// sum(y * dy): a scalar whose derivatives are the gradients.
double Objective(const Sizes& size, const Values& s, const Values& gamma,
                 const Values& beta, const Values& dy) {
  double total = 0;
  for (int64_t r = 0; r < size.rows; ++r) {
    const Statistics stats = Of(&s[r * size.n], size.n);
    for (int64_t i = 0; i < size.n; ++i) {
      const double h = (s[r * size.n + i] - stats.mean) * stats.rstd;
      total += (h * gamma[i] + beta[i]) * dy[r * size.n + i];
    }
  }
  return total;
}

TEST_P(LayerNormTest, ForwardWithResidual) {
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& size : kSizes) {
      const Values x = Random(dtype, size.rows * size.n, 2.0);
      Values residual = Random(size.rows * size.n);
      for (double& v : residual) v += 3;
      residual = AsStored(dtype, residual);
      const Values gamma = Random(dtype, size.n), beta = Random(dtype, size.n);
      Values s(x.size()), y(x.size()), mean, rstd;
      for (size_t i = 0; i < x.size(); ++i) s[i] = x[i] + residual[i];
      s = AsStored(dtype, s);
      for (int64_t r = 0; r < size.rows; ++r) {
        const Statistics stats = Of(&s[r * size.n], size.n);
        mean.push_back(stats.mean);
        rstd.push_back(stats.rstd);
        for (int64_t i = r * size.n; i < (r + 1) * size.n; ++i) {
          y[i] = (s[i] - stats.mean) * stats.rstd * gamma[i % size.n] +
                 beta[i % size.n];
        }
      }
      const std::vector<int64_t> dims = {size.rows, size.n};
      const TestTensor tx(device(), dims, x, dtype);
      const TestTensor tr(device(), dims, residual, dtype);
      const TestTensor tg(device(), {size.n}, gamma, dtype);
      const TestTensor tb(device(), {size.n}, beta, dtype);
      const TestTensor ty(device(), dtype, dims);
      const TestTensor tmean(device(), DType::kF32, {size.rows});
      const TestTensor trstd(device(), DType::kF32, {size.rows});
      LayerNorm(device(), {.x = tx,
                           .residual = tr,
                           .sum = tr,
                           .gamma = tg,
                           .beta = tb,
                           .y = ty,
                           .mean = tmean,
                           .rstd = trstd});
      EXPECT_EQ(tr.Read(), s);
      EXPECT_LT(RelativeError(ty.Read(), y), ErrorOf(dtype)) << size.n;
      EXPECT_LT(RelativeError(tmean.Read(), mean), kF32Error);
      EXPECT_LT(RelativeError(trstd.Read(), rstd), kF32Error);
      // Without a residual, of the sum, the same.
      const TestTensor again(device(), dtype, dims);
      LayerNorm(device(), {.x = tr, .gamma = tg, .beta = tb, .y = again});
      EXPECT_EQ(again.Read(), ty.Read());
    }
  }
}

TEST_P(LayerNormTest, BackwardByFiniteDifferences) {
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& size : {Sizes{1, 3}, Sizes{3, 17}, Sizes{7, 65}}) {
      const Values s = Random(dtype, size.rows * size.n);
      const Values dy = Random(dtype, s.size());
      const Values gamma = Random(dtype, size.n), beta = Random(dtype, size.n);
      const auto derivative = [&](int which, size_t i) {
        const auto at = [&](double step) {
          Values moved[3] = {s, gamma, beta};
          moved[which][i] += step;
          return Objective(size, moved[0], moved[1], moved[2], dy);
        };
        return (at(1e-5) - at(-1e-5)) / 2e-5;
      };
      const Values incoming = Random(dtype, s.size());
      Values dx = incoming, dgamma = gamma, dbeta = beta, mean, rstd;
      for (size_t i = 0; i < s.size(); ++i) dx[i] += derivative(0, i);
      for (int64_t i = 0; i < size.n; ++i) {
        dgamma[i] += derivative(1, i);
        dbeta[i] += derivative(2, i);
      }
      for (int64_t r = 0; r < size.rows; ++r) {
        mean.push_back(Of(&s[r * size.n], size.n).mean);
        rstd.push_back(Of(&s[r * size.n], size.n).rstd);
      }
      const std::vector<int64_t> dims = {size.rows, size.n};
      const TestTensor ts(device(), dims, s, dtype);
      const TestTensor tdy(device(), dims, dy, dtype);
      const TestTensor tin(device(), dims, incoming, dtype);
      const TestTensor tgamma(device(), {size.n}, gamma, dtype);
      const TestTensor tmean(device(), {size.rows}, mean);
      const TestTensor trstd(device(), {size.rows}, rstd);
      const TestTensor tdx(device(), dtype, dims);
      LayerNormBackwardInput(device(), {.dy = tdy,
                                        .s = ts,
                                        .gamma = tgamma,
                                        .mean = tmean,
                                        .rstd = trstd,
                                        .residual_gradient = tin,
                                        .dx = tdx});
      EXPECT_LT(RelativeError(tdx.Read(), dx), ErrorOf(dtype)) << size.n;
      for (const DType of_gradient : GradientTypes(dtype)) {
        const TestTensor tg(device(), {size.n}, gamma, of_gradient);
        const TestTensor tb(device(), {size.n}, beta, of_gradient);
        LayerNormBackwardWeight(device(), {.dy = tdy,
                                           .s = ts,
                                           .mean = tmean,
                                           .rstd = trstd,
                                           .dgamma = tg,
                                           .dbeta = tb});
        EXPECT_LT(RelativeError(tg.Read(), dgamma), ErrorOf(of_gradient));
        EXPECT_LT(RelativeError(tb.Read(), dbeta), ErrorOf(of_gradient));
        // Each alone, to the bit.
        const TestTensor only_g(device(), {size.n}, gamma, of_gradient);
        const TestTensor only_b(device(), {size.n}, beta, of_gradient);
        LayerNormBackwardWeight(device(), {.dy = tdy,
                                           .s = ts,
                                           .mean = tmean,
                                           .rstd = trstd,
                                           .dgamma = only_g});
        LayerNormBackwardWeight(device(), {.dy = tdy,
                                           .s = ts,
                                           .mean = tmean,
                                           .rstd = trstd,
                                           .dbeta = only_b});
        EXPECT_EQ(only_g.Read(), tg.Read());
        EXPECT_EQ(only_b.Read(), tb.Read());
      }
    }
  }
}

// As wide as models are, with g = dy gamma and h what was normalised:
//   dx = rstd (g - mean(g) - h mean(g h)).
TEST_P(LayerNormTest, BackwardOfWideRows) {
  constexpr int64_t kRows = 2;
  for (const int64_t n : {6144, 12288}) {
    const Values s = Random(kRows * n), dy = Random(kRows * n);
    const Values gamma = Random(n);
    Values dx(s.size()), mean, rstd;
    for (int64_t r = 0; r < kRows; ++r) {
      const Statistics stats = Of(&s[r * n], n);
      mean.push_back(stats.mean);
      rstd.push_back(stats.rstd);
      const auto g = [&](int64_t i) { return dy[r * n + i] * gamma[i]; };
      const auto h = [&](int64_t i) {
        return (s[r * n + i] - stats.mean) * stats.rstd;
      };
      double g_mean = 0, gh_mean = 0;
      for (int64_t i = 0; i < n; ++i) {
        g_mean += g(i) / n;
        gh_mean += g(i) * h(i) / n;
      }
      for (int64_t i = 0; i < n; ++i) {
        dx[r * n + i] = stats.rstd * (g(i) - g_mean - h(i) * gh_mean);
      }
    }
    const TestTensor ts(device(), {kRows, n}, s), tdy(device(), {kRows, n}, dy);
    const TestTensor tgamma(device(), {n}, gamma);
    const TestTensor tmean(device(), {kRows}, mean);
    const TestTensor trstd(device(), {kRows}, rstd);
    const TestTensor tdx(device(), DType::kF32, {kRows, n});
    LayerNormBackwardInput(device(), {.dy = tdy,
                                      .s = ts,
                                      .gamma = tgamma,
                                      .mean = tmean,
                                      .rstd = trstd,
                                      .dx = tdx});
    EXPECT_LT(RelativeError(tdx.Read(), dx), kF32Error) << n;
  }
}

TEST_P(LayerNormTest, BackwardWeightOverManyRows) {
  const Sizes size{1027, 200};
  const Values s = Random(size.rows * size.n), dy = Random(s.size());
  const Values mean = Random(size.rows), rstd = Random(size.rows);
  Values dgamma(size.n), dbeta(size.n);
  for (size_t i = 0; i < s.size(); ++i) {
    const int64_t row = i / size.n, column = i % size.n;
    dgamma[column] += dy[i] * (s[i] - mean[row]) * rstd[row];
    dbeta[column] += dy[i];
  }
  const TestTensor ts(device(), {size.rows, size.n}, s);
  const TestTensor tdy(device(), {size.rows, size.n}, dy);
  const TestTensor tmean(device(), {size.rows}, mean);
  const TestTensor trstd(device(), {size.rows}, rstd);
  const TestTensor tg(device(), {size.n}, Values(size.n));
  const TestTensor tb(device(), {size.n}, Values(size.n));
  LayerNormBackwardWeight(device(), {.dy = tdy,
                                     .s = ts,
                                     .mean = tmean,
                                     .rstd = trstd,
                                     .dgamma = tg,
                                     .dbeta = tb});
  EXPECT_LT(RelativeError(tg.Read(), dgamma), kF32Error);
  EXPECT_LT(RelativeError(tb.Read(), dbeta), kF32Error);
}

TEST_P(LayerNormTest, DropoutOfTheBranchIsApplyDropout) {
  const Sizes size{33, 65};
  const std::vector<int64_t> dims = {size.rows, size.n};
  const DropoutMask mask{.probability = 0.3f,
                         .stream = {.seed = 5, .step = 2},
                         .first_element = 1001};
  const TestTensor x(device(), dims, Random(size.rows * size.n));
  const TestTensor residual(device(), dims, Random(size.rows * size.n));
  const TestTensor gamma(device(), {size.n}, Random(size.n));
  const TestTensor sum(device(), DType::kF32, dims);
  const TestTensor y(device(), DType::kF32, dims);
  LayerNorm(device(), {.x = x,
                       .residual = residual,
                       .sum = sum,
                       .dropout = mask,
                       .gamma = gamma,
                       .beta = gamma,
                       .y = y});
  ApplyDropout(device(), {.x = x, .residual = residual, .y = y, .mask = mask});
  EXPECT_EQ(sum.Read(), y.Read());
}

TROUPE_ON_EACH_DEVICE(LayerNormTest);

}  // namespace
}  // namespace troupe
