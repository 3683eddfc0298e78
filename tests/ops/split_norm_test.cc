#include "ops/split_norm.h"

#include <cmath>
#include <memory>
#include <vector>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class SplitNormTest : public OpTest {};

constexpr double kEpsilon = 1e-5;

// A norm of whole rows, whose columns ranks have in pieces.
struct Problem {
  DType dtype;
  int64_t rows;
  std::vector<int64_t> pieces;  // columns of each rank
  bool centred;
  bool biased;  // with beta
  Values x, gamma, beta, dy, residual;

  int64_t columns() const {
    int64_t sum = 0;
    for (int64_t n : pieces) sum += n;
    return sum;
  }
};

struct Norm {
  Values mean, rstd;  // of each row
  Values y;
  Values dx;  // with the residual's
};

// Naively, of whole rows: with g = dy gamma and h what was normalised,
//   dx = residual + rstd (g - mean(g) - h mean(g h)), RMS without mean(g).
Norm Reference(const Problem& p) {
  const int64_t n = p.columns();
  Norm norm;
  for (int64_t row = 0; row < p.rows; ++row) {
    const double* const x = &p.x[row * n];
    double mean = 0, variance = 0, g_mean = 0, gh_mean = 0;
    for (int64_t i = 0; p.centred && i < n; ++i) mean += x[i] / n;
    for (int64_t i = 0; i < n; ++i) variance += std::pow(x[i] - mean, 2) / n;
    const double rstd = 1 / std::sqrt(variance + kEpsilon);
    const auto g = [&](int64_t i) { return p.dy[row * n + i] * p.gamma[i]; };
    const auto h = [&](int64_t i) { return (x[i] - mean) * rstd; };
    for (int64_t i = 0; i < n; ++i) {
      if (p.centred) g_mean += g(i) / n;
      gh_mean += g(i) * h(i) / n;
    }
    for (int64_t i = 0; i < n; ++i) {
      norm.y.push_back(h(i) * p.gamma[i] + (p.biased ? p.beta[i] : 0));
      norm.dx.push_back(p.residual[row * n + i] +
                        rstd * (g(i) - g_mean - h(i) * gh_mean));
    }
    norm.mean.push_back(mean);
    norm.rstd.push_back(rstd);
  }
  return norm;
}

// Columns [begin, begin + n) of rows of `columns`.
Values Cut(const Values& whole, int64_t columns, int64_t begin, int64_t n) {
  Values piece;
  for (size_t at = begin; at < whole.size(); at += columns) {
    piece.insert(piece.end(), &whole[at], &whole[at] + n);
  }
  return piece;
}

void Paste(const Values& piece, int64_t columns, int64_t begin, int64_t n,
           Values* whole) {
  for (size_t i = 0; i < piece.size(); ++i) {
    whole->at(i / n * columns + begin + i % n) = piece[i];
  }
}

Values Sum(const Values& a, const Values& b) {
  Values sum = a;
  for (size_t i = 0; i < b.size(); ++i) sum[i] += b[i];
  return sum;
}

// What a rank has: its columns of everything. It writes dx over the residual's
// gradient.
class ColumnsOfRank {
 public:
  ColumnsOfRank(Device& device, const Problem& p, int64_t begin, int64_t n)
      : device_(device),
        p_(p),
        begin_(begin),
        n_(n),
        x_(Rows(p.x)),
        gamma_(device, {n}, Cut(p.gamma, p.columns(), begin, n), p.dtype),
        beta_(device, {n}, Cut(p.beta, p.columns(), begin, n), p.dtype),
        dy_(Rows(p.dy)),
        dx_(Rows(p.residual)),
        y_(device, p.dtype, {p.rows, n}),
        mean_(device, DType::kF32, {p.rows}),
        rstd_(device, DType::kF32, {p.rows}),
        row_sums_(device, DType::kF64, {p.rows, 2}) {}

  Values OwnRowSums() {
    RowSums(device_, {.x = x_, .row_sums = row_sums_});
    return row_sums_.Read();
  }

  void Forward(const Values& row_sums) {
    row_sums_.Write(row_sums);
    SplitNorm(device_, {.x = x_,
                        .row_sums = row_sums_,
                        .columns = p_.columns(),
                        .gamma = gamma_,
                        .beta = p_.biased ? beta_.tensor() : Tensor(),
                        .centred = p_.centred,
                        .y = y_,
                        .mean = mean(),
                        .rstd = rstd_});
  }

  Values OwnRowSumsGradient() {
    SplitNormBackwardInput(device_, {.dy = dy_,
                                     .x = x_,
                                     .gamma = gamma_,
                                     .mean = mean(),
                                     .rstd = rstd_,
                                     .columns = p_.columns(),
                                     .residual_gradient = dx_,
                                     .dx = dx_,
                                     .row_sums_gradient = row_sums_});
    return row_sums_.Read();
  }

  void Backward(const Values& row_sums_gradient) {
    row_sums_.Write(row_sums_gradient);
    RowSumsBackward(device_, {.x = x_,
                              .row_sums_gradient = row_sums_,
                              .residual_gradient = dx_,
                              .dx = dx_});
  }

  void Collect(Norm* norm) const {
    Paste(y_.Read(), p_.columns(), begin_, n_, &norm->y);
    Paste(dx_.Read(), p_.columns(), begin_, n_, &norm->dx);
    if (p_.centred) norm->mean = mean_.Read();
    norm->rstd = rstd_.Read();
  }

 private:
  TestTensor Rows(const Values& whole) const {
    return TestTensor(device_, {p_.rows, n_},
                      Cut(whole, p_.columns(), begin_, n_), p_.dtype);
  }
  Tensor mean() const { return p_.centred ? mean_.tensor() : Tensor(); }

  Device& device_;
  const Problem& p_;
  const int64_t begin_, n_;
  TestTensor x_, gamma_, beta_, dy_, dx_, y_, mean_, rstd_, row_sums_;
};

// The whole norm by ranks that have pieces of its columns.
Norm BySplit(Device& device, const Problem& p) {
  std::vector<std::unique_ptr<ColumnsOfRank>> ranks;
  int64_t begin = 0;
  for (int64_t n : p.pieces) {
    ranks.push_back(std::make_unique<ColumnsOfRank>(device, p, begin, n));
    begin += n;
  }
  Values row_sums(2 * p.rows), gradient(2 * p.rows);
  for (const auto& rank : ranks) row_sums = Sum(row_sums, rank->OwnRowSums());
  for (const auto& rank : ranks) rank->Forward(row_sums);
  for (const auto& rank : ranks) {
    gradient = Sum(gradient, rank->OwnRowSumsGradient());
  }
  Norm norm = {.y = Values(p.x.size()), .dx = Values(p.x.size())};
  for (const auto& rank : ranks) {
    rank->Backward(gradient);
    rank->Collect(&norm);
  }
  return norm;
}

const std::vector<int64_t> kPieces[] = {
    {7},      {64},      {1030},       {4, 3},     {7, 7},
    {33, 33}, {1, 1, 1}, {33, 33, 33}, {1, 7, 33}, {128, 129, 70}};

TEST_P(SplitNormTest, PiecesMakeTheWhole) {
  for (const DType dtype : ActivationTypes()) {
    for (const std::vector<int64_t>& pieces : kPieces) {
      for (const bool centred : {true, false}) {
        Problem p{.dtype = dtype,
                  .rows = 17,
                  .pieces = pieces,
                  .centred = centred,
                  .biased = centred};
        const int64_t n = p.columns();
        p.x = Random(dtype, p.rows * n, 2.0);
        for (double& v : p.x) v += 1;
        p.x = AsStored(dtype, p.x);
        p.gamma = Random(dtype, n);
        p.beta = Random(dtype, n);
        p.dy = Random(dtype, p.rows * n);
        p.residual = Random(dtype, p.rows * n);
        const Norm want = Reference(p);
        const Norm got = BySplit(device(), p);
        EXPECT_LT(RelativeError(got.y, want.y), ErrorOf(dtype)) << n;
        // Rounded twice, and partly cancelled in between.
        EXPECT_LT(RelativeError(got.dx, want.dx), 2 * ErrorOf(dtype)) << n;
        EXPECT_LT(RelativeError(got.rstd, want.rstd), kF32Error);
        if (centred) {
          EXPECT_LT(RelativeError(got.mean, want.mean), kF32Error);
        }
      }
    }
  }
}

TEST_P(SplitNormTest, BackwardByFiniteDifferences) {
  for (const bool centred : {true, false}) {
    Problem p{.dtype = DType::kF32,
              .rows = 3,
              .pieces = {3, 5},
              .centred = centred,
              .biased = true};
    const int64_t n = p.columns();
    p.x = Random(p.rows * n);
    p.gamma = Random(n);
    p.beta = Random(n);
    p.dy = Random(p.rows * n);
    p.residual = Random(p.rows * n);
    Values dx = p.residual;
    for (size_t i = 0; i < p.x.size(); ++i) {
      const auto objective = [&](double step) {
        Problem moved = p;
        moved.x[i] += step;
        const Values y = Reference(moved).y;
        double sum = 0;
        for (size_t j = 0; j < y.size(); ++j) sum += y[j] * p.dy[j];
        return sum;
      };
      dx[i] += (objective(1e-5) - objective(-1e-5)) / 2e-5;
    }
    EXPECT_LT(RelativeError(BySplit(device(), p).dx, dx), kF32Error);
  }
}

// Rows far from zero: their variance is a millionth of their mean square.
TEST_P(SplitNormTest, VarianceOfALargeMean) {
  constexpr int64_t kRows = 3;
  for (const int64_t n : {33, 1030, 12288}) {
    Values x = Random(kRows * n);
    for (double& v : x) v += 1000;
    x = AsStored(DType::kF32, x);
    const TestTensor tx(device(), {kRows, n}, x);
    const TestTensor row_sums(device(), DType::kF64, {kRows, 2});
    RowSums(device(), {.x = tx, .row_sums = row_sums});
    const Values sums = row_sums.Read();
    Values ones(n, 1.0), y, rstd;
    for (int64_t row = 0; row < kRows; ++row) {
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < n; ++i) mean += x[row * n + i] / n;
      for (int64_t i = 0; i < n; ++i) {
        variance += std::pow(x[row * n + i] - mean, 2) / n;
      }
      EXPECT_NEAR(sums[2 * row] / n, mean, 1e-7 * mean);
      EXPECT_NEAR(sums[2 * row + 1] / n - std::pow(sums[2 * row] / n, 2),
                  variance, 1e-7 * variance);
      rstd.push_back(1 / std::sqrt(variance + kEpsilon));
      for (int64_t i = 0; i < n; ++i) {
        y.push_back((x[row * n + i] - mean) * rstd.back());
      }
    }
    const TestTensor gamma(device(), {n}, ones);
    const TestTensor tmean(device(), DType::kF32, {kRows});
    const TestTensor trstd(device(), DType::kF32, {kRows});
    SplitNorm(device(), {.x = tx,
                         .row_sums = row_sums,
                         .columns = n,
                         .gamma = gamma,
                         .y = tx,
                         .mean = tmean,
                         .rstd = trstd});
    EXPECT_LT(RelativeError(trstd.Read(), rstd), 1e-7);
    // The mean is rounded to f32 once.
    EXPECT_LT(RelativeError(tx.Read(), y), 5e-5);
  }
}

// g0 and 2 x g1 cancel but for a thousandth of a thousandth.
TEST_P(SplitNormTest, GradientOfRowSumsOfALargeMean) {
  constexpr int64_t kRows = 2, n = 37;
  Values x = Random(kRows * n), g, dx;
  for (double& v : x) v += 1000;
  x = AsStored(DType::kF32, x);
  for (int64_t row = 0; row < kRows; ++row) {
    const double g1 = row + 0.1;
    g.push_back(-2000 * g1);
    g.push_back(g1);
    for (int64_t i = 0; i < n; ++i) {
      dx.push_back(2 * g1 * (x[row * n + i] - 1000));
    }
  }
  const TestTensor tx(device(), {kRows, n}, x);
  const TestTensor tg(device(), {kRows, 2}, g, DType::kF64);
  const TestTensor tdx(device(), DType::kF32, {kRows, n});
  RowSumsBackward(device(), {.x = tx, .row_sums_gradient = tg, .dx = tdx});
  EXPECT_LT(RelativeError(tdx.Read(), dx), 1e-7);
}

TEST_P(SplitNormTest, GradientsMayLieInPlace) {
  constexpr int64_t kRows = 5;
  for (const DType dtype : ActivationTypes()) {
    for (const int64_t n : {1, 7, 33, 128}) {
      const Values dy = Random(dtype, kRows * n);
      const TestTensor x(device(), {kRows, n}, Random(kRows * n), dtype);
      const TestTensor gamma(device(), {n}, Random(n), dtype);
      const TestTensor rstd(device(), {kRows}, Values(kRows, 0.75));
      const TestTensor from(device(), {kRows, n}, dy, dtype);
      const TestTensor apart(device(), dtype, {kRows, n});
      const TestTensor row_sums(device(), DType::kF64, {kRows, 2});
      const auto run = [&](const Tensor& dx) {
        SplitNormBackwardInput(device(), {.dy = from,
                                          .x = x,
                                          .gamma = gamma,
                                          .rstd = rstd,
                                          .columns = 2 * n,
                                          .dx = dx,
                                          .row_sums_gradient = row_sums});
        return row_sums.Read();
      };
      const Values sums = run(apart);
      EXPECT_EQ(run(from), sums) << n;
      EXPECT_EQ(from.Read(), apart.Read()) << n;
    }
  }
}

// Forward passes of evaluation keep no statistics.
TEST_P(SplitNormTest, KeepsNoStatisticsUnasked) {
  constexpr int64_t kRows = 4, n = 9;
  const TestTensor x(device(), {kRows, n}, Random(kRows * n));
  const TestTensor gamma(device(), {n}, Random(n));
  const TestTensor row_sums(device(), DType::kF64, {kRows, 2});
  const TestTensor mean(device(), DType::kF32, {kRows});
  const TestTensor rstd(device(), DType::kF32, {kRows});
  const TestTensor y(device(), DType::kF32, {kRows, n});
  RowSums(device(), {.x = x, .row_sums = row_sums});
  SplitNormArgs args = {.x = x,
                        .row_sums = row_sums,
                        .columns = n,
                        .gamma = gamma,
                        .y = y,
                        .mean = mean,
                        .rstd = rstd};
  SplitNorm(device(), args);
  args.mean = args.rstd = Tensor();
  args.y = x;
  SplitNorm(device(), args);
  EXPECT_EQ(x.Read(), y.Read());
}

TROUPE_ON_EACH_DEVICE(SplitNormTest);

}  // namespace
}  // namespace troupe
