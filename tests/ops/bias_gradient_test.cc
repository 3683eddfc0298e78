#include "ops/bias_gradient.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class BiasGradientTest : public OpTest {};

TEST_P(BiasGradientTest, SumsColumnsIntoWhatIsThere) {
  struct Sizes {
    int64_t rows, n;
  };
  for (const Sizes& s : {Sizes{1, 1}, Sizes{3, 17}, Sizes{65, 129},
                         Sizes{1025, 65}, Sizes{130, 1030}}) {
    for (const DType dtype : ActivationTypes()) {
      for (const DType of_gradient : GradientTypes(dtype)) {
        const Values dy = Random(dtype, s.rows * s.n);
        Values want = Random(of_gradient, s.n);
        const TestTensor tdy(device(), {s.rows, s.n}, dy, dtype);
        const TestTensor db(device(), {s.n}, want, of_gradient);
        for (size_t i = 0; i < dy.size(); ++i) want[i % s.n] += dy[i];
        BiasGradient(device(), {.dy = tdy, .db = db});
        EXPECT_LT(RelativeError(db.Read(), want), ErrorOf(of_gradient, 1e-6))
            << s.rows << " " << s.n;
      }
    }
  }
}

TEST_P(BiasGradientTest, StridedRows) {
  for (const DType dtype : ActivationTypes()) {
    const Values dy = Random(dtype, 50 * 60);
    Values want(20);
    for (int64_t i = 0; i < 50; ++i) {
      for (int64_t j = 0; j < 20; ++j) want[j] += dy[i * 60 + 30 + j];
    }
    const TestTensor tdy(device(), {50, 60}, dy, dtype);
    const TestTensor db(device(), {20}, Values(20));
    BiasGradient(device(), {.dy = tdy.tensor().Slice(1, 30, 50), .db = db});
    EXPECT_LT(RelativeError(db.Read(), want), 1e-6);
  }
}

TROUPE_ON_EACH_DEVICE(BiasGradientTest);

}  // namespace
}  // namespace troupe
