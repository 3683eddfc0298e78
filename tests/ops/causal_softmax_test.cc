#include "ops/causal_softmax.h"

#include <cmath>

#include "tests/ops/devices.h"
#include "tests/ops/random_documents.h"

namespace troupe {
namespace {

class CausalSoftmaxTest : public OpTest {};

struct Sizes {
  int64_t matrices, rows, keys, first_position;
};
const Sizes kSizes[] = {{1, 1, 1, 0},   {2, 3, 3, 0},    {3, 4, 12, 4},
                        {2, 5, 70, 65}, {4, 33, 130, 7}, {1, 64, 1030, 960}};

int64_t Seen(const Sizes& size, int64_t row) {
  return size.first_position + row % size.rows + 1;
}

Values Softmax(const Sizes& size, const Values& x, double scale) {
  Values y(x.size());
  for (int64_t row = 0; row < size.matrices * size.rows; ++row) {
    double sum = 0;
    for (int64_t j = 0; j < Seen(size, row); ++j) {
      sum += std::exp(scale * x[row * size.keys + j]);
    }
    for (int64_t j = 0; j < Seen(size, row); ++j) {
      y[row * size.keys + j] = std::exp(scale * x[row * size.keys + j]) / sum;
    }
  }
  return y;
}

TEST_P(CausalSoftmaxTest, ForwardAndBackwardInPlace) {
  constexpr float kScale = 0.7f;
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& size : kSizes) {
      const int64_t count = size.matrices * size.rows * size.keys;
      const Values x = Random(dtype, count, 3.0), dy = Random(dtype, count);
      const Values want_y = Softmax(size, x, kScale);
      const TestTensor y(device(), {size.matrices, size.rows, size.keys}, x,
                         dtype);
      CausalSoftmax(device(), {.x = y,
                               .y = y,
                               .scale = kScale,
                               .first_position = size.first_position});
      EXPECT_LT(RelativeError(y.Read(), want_y), ErrorOf(dtype)) << size.keys;
      const Values made = y.Read();
      Values want_dx(count);
      for (int64_t row = 0; row < size.matrices * size.rows; ++row) {
        double sum = 0;
        for (int64_t j = 0; j < Seen(size, row); ++j) {
          sum += dy[row * size.keys + j] * made[row * size.keys + j];
        }
        for (int64_t j = 0; j < Seen(size, row); ++j) {
          const int64_t i = row * size.keys + j;
          want_dx[i] = kScale * made[i] * (dy[i] - sum);
        }
      }
      const TestTensor gradient(device(), {size.matrices, size.rows, size.keys},
                                dy, dtype);
      CausalSoftmaxBackward(device(), {.y = y,
                                       .dy = gradient,
                                       .dx = gradient,
                                       .scale = kScale,
                                       .first_position = size.first_position});
      // One row of one key has no gradient but for rounding.
      if (count > 1) {
        EXPECT_LT(RelativeError(gradient.Read(), want_dx), ErrorOf(dtype))
            << size.keys;
      }
    }
  }
}

// Each document's columns are those of a matrix of its own, all others are 0.
TEST_P(CausalSoftmaxTest, SeesNoKeyOfOtherDocuments) {
  if (!TakesDocuments(device())) GTEST_SKIP() << "on GPUs";
  constexpr int64_t kSequences = 2, kHeads = 3, kRows = 40, kKeys = 130;
  constexpr int64_t kFirst = 70;
  const Values documents = RandomDocuments(kSequences, kKeys, 25);
  for (const DType dtype : ActivationTypes()) {
    const int64_t count = kSequences * kHeads * kRows * kKeys;
    const Values x = Random(dtype, count, 3.0), dy = Random(dtype, count);
    const std::vector<int64_t> dims = {kSequences * kHeads, kRows, kKeys};
    const TestTensor y(device(), dims, x, dtype);
    const TestTensor tdocuments(device(), {kSequences, kKeys}, documents,
                                DType::kI32);
    CausalSoftmax(device(), {.x = y,
                             .y = y,
                             .scale = 0.7f,
                             .first_position = kFirst,
                             .documents = tdocuments});
    const Values made = y.Read();
    const TestTensor dx(device(), dims, dy, dtype);
    CausalSoftmaxBackward(device(), {.y = y,
                                     .dy = dx,
                                     .dx = dx,
                                     .scale = 0.7f,
                                     .first_position = kFirst,
                                     .documents = tdocuments});
    Values want_y(count), want_dx(count);
    for (int64_t row = 0; row < kSequences * kHeads * kRows; ++row) {
      const int64_t position = kFirst + row % kRows;
      const auto begin = static_cast<int64_t>(
          documents[row / (kHeads * kRows) * kKeys + position]);
      double sum = 0, weighted = 0;
      for (int64_t j = begin; j <= position; ++j) {
        sum += want_y[row * kKeys + j] = std::exp(0.7 * x[row * kKeys + j]);
        weighted += made[row * kKeys + j] * dy[row * kKeys + j];
      }
      for (int64_t j = begin; j <= position; ++j) {
        const int64_t i = row * kKeys + j;
        want_y[i] /= sum;
        want_dx[i] = 0.7 * made[i] * (dy[i] - weighted);
      }
    }
    EXPECT_LT(RelativeError(made, want_y), ErrorOf(dtype));
    EXPECT_LT(RelativeError(dx.Read(), want_dx), ErrorOf(dtype));
  }
}

// Large scores do not overflow, and keys ahead are not read.
TEST_P(CausalSoftmaxTest, LooksAtNoKeyAhead) {
  const double nan = std::nan("");
  const Values x = {1e30, nan, nan, 5, 1e30, nan};
  const TestTensor y(device(), {2, 3}, x, DType::kF32);
  CausalSoftmax(device(), {.x = y, .y = y});
  EXPECT_EQ(y.Read(), (Values{1, 0, 0, 0, 1, 0}));
}

TROUPE_ON_EACH_DEVICE(CausalSoftmaxTest);

}  // namespace
}  // namespace troupe
