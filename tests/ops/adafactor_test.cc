#include "ops/adafactor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "proto/base/matrix_workspace.h"
#include "tests/ops/devices.h"

namespace troupe {
namespace {

class AdafactorTest : public OpTest {};

constexpr double kEpsilon1 = 1e-12;
constexpr double kEpsilon2 = 1e-3;

double Rms(const Values& values) {
  double squares = 0;
  for (const double v : values) squares += v * v;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

struct Reference {
  int64_t rows, columns;
  bool factored;
  Values w;
  Values row, column, second;

  Reference(int64_t rows, int64_t columns, bool factored, Values weights)
      : rows(rows),
        columns(columns),
        factored(factored),
        w(std::move(weights)),
        row(rows),
        column(columns),
        second(rows * columns) {}

  void Step(const Values& g, double beta2, double lr, double decay,
            bool scales) {
    Values u(g.size());
    const auto blend = [beta2](double& moment, double mean) {
      moment = beta2 * moment + (1 - beta2) * mean;
    };
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < columns; ++j) {
        sum += g[i * columns + j] * g[i * columns + j] + kEpsilon1;
      }
      blend(row[i], sum / static_cast<double>(columns));
    }
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < rows; ++i) {
        sum += g[i * columns + j] * g[i * columns + j] + kEpsilon1;
      }
      blend(column[j], sum / static_cast<double>(rows));
    }
    double mean = 0;
    for (const double r : row) mean += r / static_cast<double>(rows);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = i * columns + j;
        blend(second[at], g[at] * g[at] + kEpsilon1);
        u[at] = g[at] /
                std::sqrt(factored ? row[i] * column[j] / mean : second[at]);
      }
    }
    const double step = lr * (scales ? std::max(kEpsilon2, Rms(w)) : 1);
    const double clip = std::max(1.0, Rms(u));
    for (size_t at = 0; at < w.size(); ++at) {
      w[at] -= step * (decay * w[at] + u[at] / clip);
    }
  }
};

struct Shape {
  int64_t rows, columns;
  bool factored = true;
};

// The first update has an RMS of 1 or less, as its moments are those of its own
// gradient; the last gradients are larger, and are clipped.
TEST_P(AdafactorTest, OverSomeSteps) {
  for (const auto& [rows, columns, factored] :
       std::vector<Shape>{{24, 24},
                          {24, 89},
                          {89, 24},
                          {1, 17},
                          {17, 1},
                          {130, 65},
                          {1, 17, false},
                          {1, 1500, false}}) {
    const int64_t n = rows * columns;
    for (const bool scales : {true, false}) {
      for (const DType copy_type : ActivationTypes()) {
        for (const DType gradient_type : GradientTypes(copy_type)) {
          Reference reference(rows, columns, factored, Random(n, 0.1));
          const TestTensor tw(device(), {rows, columns}, reference.w);
          const TestTensor row(device(), {rows}, Values(rows));
          const TestTensor column(device(), {columns}, Values(columns));
          const TestTensor second(device(), {columns}, Values(columns));
          const TestTensor copy(device(), copy_type, {rows, columns});
          const TestTensor work(device(), DType::kF32,
                                {AdafactorWorkspace(rows, columns)});
          for (int step = 1; step <= 4; ++step) {
            const Values gradient = Random(gradient_type, n, step == 4 ? 8 : 1);
            Values g = gradient;
            for (double& v : g) v *= 0.5;
            const double beta2 = 1 - std::pow(step, -0.8);
            reference.Step(g, beta2, 0.02, 0.1, scales);
            const TestTensor tg(device(), {rows, columns}, gradient,
                                gradient_type);
            Adafactor(device(),
                      {.weights = tw,
                       .gradients = tg,
                       .row_moment = factored ? Tensor(row) : Tensor(),
                       .column_moment = factored ? Tensor(column) : Tensor(),
                       .second_moment = factored ? Tensor() : Tensor(second),
                       .parameters = copy,
                       .learning_rate = 0.02f,
                       .beta2 = beta2,
                       .epsilon1 = kEpsilon1,
                       .epsilon2 = kEpsilon2,
                       .scale_parameter = scales,
                       .weight_decay = 0.1f,
                       .gradient_scale = 0.5f,
                       .zero_gradients = step == 4,
                       .workspace = work});
            EXPECT_EQ(tg.Read(), step == 4 ? Values(n) : gradient);
          }
          EXPECT_LT(RelativeError(tw.Read(), reference.w), 1e-6)
              << rows << " " << columns;
          if (factored) {
            EXPECT_LT(RelativeError(row.Read(), reference.row), kF32Error);
            EXPECT_LT(RelativeError(column.Read(), reference.column),
                      kF32Error);
          } else {
            EXPECT_LT(RelativeError(second.Read(), reference.second),
                      kF32Error);
          }
          EXPECT_EQ(copy.Read(), AsStored(copy_type, tw.Read()));
        }
      }
    }
  }
}

// Rows and columns without gradients, as those of tokens that do not occur,
// stay as they are; weights that are all zero move by epsilon2.
TEST_P(AdafactorTest, RowsOfZeros) {
  constexpr int64_t kRows = 4, kColumns = 3;
  Values gradient(kRows * kColumns);
  for (int64_t j = 0; j < kColumns; ++j) gradient[kColumns + j] = 1 + j;
  const TestTensor tw(device(), {kRows, kColumns}, Values(kRows * kColumns));
  const TestTensor row(device(), {kRows}, Values(kRows));
  const TestTensor column(device(), {kColumns}, Values(kColumns));
  const TestTensor tg(device(), {kRows, kColumns}, gradient);
  const TestTensor work(device(), DType::kF32,
                        {AdafactorWorkspace(kRows, kColumns)});
  Adafactor(device(), {.weights = tw,
                       .gradients = tg,
                       .row_moment = row,
                       .column_moment = column,
                       .learning_rate = 1,
                       .workspace = work});
  // Of a matrix of rank one U is g over itself, and its RMS 1/2.
  const Values w = tw.Read();
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      EXPECT_NEAR(w[i * kColumns + j], i == 1 ? -1e-3 : 0, 1e-8)
          << i << " " << j;
    }
  }
}

TROUPE_ON_EACH_DEVICE(AdafactorTest);

}  // namespace
}  // namespace troupe
