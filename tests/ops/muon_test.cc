#include "ops/muon.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "proto/base/matrix_workspace.h"
#include "tests/ops/devices.h"

namespace troupe {
namespace {

class MuonTest : public OpTest {};

struct Shape {
  int64_t rows, columns;
};

// c = op(a) b, row by row, in double.
Values Product(const Values& a, const Values& b, int64_t m, int64_t k,
               int64_t n) {
  Values c(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j)
        c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}
Values Transposed(const Values& a, int64_t rows, int64_t columns) {
  Values t(a.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  }
  return t;
}

// As the reference implementation has it: a matrix with more rows than columns
// is transposed first.
Values Orthogonal(Values x, Shape shape) {
  const bool tall = shape.rows > shape.columns;
  if (tall) x = Transposed(x, shape.rows, shape.columns);
  const int64_t rows = std::min(shape.rows, shape.columns);
  const int64_t columns = std::max(shape.rows, shape.columns);
  double squares = 0;
  for (const double v : x) squares += v * v;
  for (double& v : x) v /= std::sqrt(squares) + 1e-7;
  for (int step = 0; step < 5; ++step) {
    const Values gram =
        Product(x, Transposed(x, rows, columns), rows, columns, rows);
    Values polynomial = Product(gram, gram, rows, rows, rows);
    for (size_t i = 0; i < polynomial.size(); ++i) {
      polynomial[i] = -4.7750 * gram[i] + 2.0315 * polynomial[i];
    }
    const Values turned = Product(polynomial, x, rows, rows, columns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + turned[i];
  }
  return tall ? Transposed(x, rows, columns) : x;
}

TEST_P(MuonTest, OverSomeSteps) {
  for (const auto& [rows, columns] : std::vector<Shape>{
           {24, 24}, {24, 89}, {89, 24}, {1, 17}, {17, 1}, {130, 65}}) {
    const int64_t n = rows * columns;
    for (const bool nesterov : {true, false}) {
      for (const DType copy_type : ActivationTypes()) {
        for (const DType gradient_type : GradientTypes(copy_type)) {
          Values w = Random(n), u(n);
          const TestTensor tw(device(), {rows, columns}, w);
          const TestTensor tu(device(), {rows, columns}, u);
          const TestTensor copy(device(), copy_type, {rows, columns});
          const TestTensor work(device(), DType::kF32,
                                {MuonWorkspace(rows, columns)});
          for (int step = 1; step <= 3; ++step) {
            const Values gradient = Random(gradient_type, n);
            Values direction(n);
            for (int64_t i = 0; i < n; ++i) {
              const double g = 0.5 * gradient[i];
              u[i] = 0.9 * u[i] + g;
              direction[i] = nesterov ? g + 0.9 * u[i] : u[i];
            }
            const Values moves = Orthogonal(direction, {rows, columns});
            const double size =
                0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
            for (int64_t i = 0; i < n; ++i) {
              w[i] = w[i] * (1 - 0.02 * 0.1) - 0.02 * size * moves[i];
            }
            const TestTensor tg(device(), {rows, columns}, gradient,
                                gradient_type);
            ASSERT_TRUE(Muon(device(), {.weights = tw,
                                        .gradients = tg,
                                        .momentum_buffer = tu,
                                        .parameters = copy,
                                        .learning_rate = 0.02f,
                                        .momentum = 0.9f,
                                        .nesterov = nesterov,
                                        .weight_decay = 0.1f,
                                        .gradient_scale = 0.5f,
                                        .zero_gradients = step == 3,
                                        .workspace = work})
                            .ok());
            EXPECT_EQ(tg.Read(), step == 3 ? Values(n) : gradient);
          }
          EXPECT_LT(RelativeError(tw.Read(), w), 1e-5)
              << rows << " " << columns;
          EXPECT_LT(RelativeError(tu.Read(), u), kF32Error);
          EXPECT_EQ(copy.Read(), AsStored(copy_type, tw.Read()));
        }
      }
    }
  }
}

// The gram matrix of an update of a wide matrix is near the identity: its
// singular values are between 0.7 and 1.2.
TEST_P(MuonTest, MovesNearlyOrthogonally) {
  constexpr int64_t kRows = 16, kColumns = 64;
  const TestTensor tw(device(), {kRows, kColumns}, Values(kRows * kColumns));
  const TestTensor tu(device(), {kRows, kColumns}, Values(kRows * kColumns));
  const TestTensor tg(device(), {kRows, kColumns}, Random(kRows * kColumns));
  const TestTensor work(device(), DType::kF32,
                        {MuonWorkspace(kRows, kColumns)});
  ASSERT_TRUE(Muon(device(), {.weights = tw,
                              .gradients = tg,
                              .momentum_buffer = tu,
                              .learning_rate = 1 / (0.2f * 8),
                              .workspace = work})
                  .ok());
  const Values w = tw.Read();
  const Values gram =
      Product(w, Transposed(w, kRows, kColumns), kRows, kColumns, kRows);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kRows; ++j) {
      if (i == j) {
        EXPECT_GT(gram[i * kRows + j], 0.45) << i;
        EXPECT_LT(gram[i * kRows + j], 1.5) << i;
      } else {
        EXPECT_LT(std::abs(gram[i * kRows + j]), 0.5) << i << " " << j;
      }
    }
  }
}

// Nothing to go by: nothing but decay.
TEST_P(MuonTest, AGradientOfZeros) {
  const Values w = Random(12);
  const TestTensor tw(device(), {3, 4}, w), tu(device(), {3, 4}, Values(12));
  const TestTensor tg(device(), {3, 4}, Values(12));
  const TestTensor work(device(), DType::kF32, {MuonWorkspace(3, 4)});
  ASSERT_TRUE(Muon(device(), {.weights = tw,
                              .gradients = tg,
                              .momentum_buffer = tu,
                              .learning_rate = 0.5f,
                              .weight_decay = 0.5f,
                              .workspace = work})
                  .ok());
  const Values after = tw.Read();
  for (size_t i = 0; i < w.size(); ++i)
    EXPECT_NEAR(after[i], 0.75 * w[i], 1e-6);
}

TROUPE_ON_EACH_DEVICE(MuonTest);

}  // namespace
}  // namespace troupe
