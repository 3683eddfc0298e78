#include "ops/cross_entropy.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class CrossEntropyTest : public OpTest {};

TEST_P(CrossEntropyTest, LossAndGradient) {
  struct Sizes {
    int64_t rows, n;
  };
  for (const Sizes& s :
       {Sizes{1, 1}, Sizes{3, 17}, Sizes{17, 129}, Sizes{65, 5003}}) {
    for (const DType dtype : kActivationTypes) {
      const double scale = 0.125;
      const Values logits = Random(dtype, s.rows * s.n, 5.0);
      Values targets = RandomInts(s.rows, 0, static_cast<int>(s.n) - 1);
      if (s.rows > 2) targets[1] = -1;
      Values gradient(logits.size()), losses(s.rows);
      double total = 10;
      for (int64_t r = 0; r < s.rows; ++r) {
        if (targets[r] < 0) continue;
        double sum = 0;
        for (int64_t i = 0; i < s.n; ++i) sum += std::exp(logits[r * s.n + i]);
        const auto target = static_cast<int64_t>(targets[r]);
        losses[r] = std::log(sum) - logits[r * s.n + target];
        total += losses[r];
        for (int64_t i = 0; i < s.n; ++i) {
          gradient[r * s.n + i] =
              (std::exp(logits[r * s.n + i]) / sum - (i == target)) * scale;
        }
      }
      const TestTensor tl(device(), {s.rows, s.n}, logits, dtype);
      const TestTensor tt(device(), {s.rows}, targets, DType::kI32);
      const TestTensor loss(device(), {1}, {10}, DType::kF64);
      const TestTensor count(device(), {1}, {5}, DType::kF64);
      const TestTensor row_losses(device(), DType::kF32, {s.rows});
      CrossEntropy(device(), {.logits = tl,
                              .targets = tt,
                              .loss_sum = loss,
                              .count = count,
                              .losses = row_losses});
      EXPECT_NEAR(loss.Read()[0], total, 1e-6 * total);
      EXPECT_EQ(count.Read()[0], 5 + s.rows - (s.rows > 2 ? 1 : 0));
      EXPECT_LT(RelativeError(row_losses.Read(), losses), kF32Error) << s.n;
      EXPECT_EQ(tl.Read(), logits);
      CrossEntropy(device(), {.logits = tl,
                              .targets = tt,
                              .loss_sum = loss,
                              .gradient = true,
                              .gradient_scale = static_cast<float>(scale)});
      EXPECT_LT(RelativeError(tl.Read(), gradient), ErrorOf(dtype)) << s.n;
    }
  }
}

TEST_P(CrossEntropyTest, LargeAndStridedLogits) {
  Values logits = Random(4 * 50);
  for (double& v : logits) v = static_cast<float>(v + 1e4);
  const TestTensor tl(device(), {4, 50}, logits);
  const TestTensor tt(device(), {2, 2}, {0, 39, 3, 7}, DType::kI32);
  const TestTensor loss(device(), {1}, {0}, DType::kF64);
  CrossEntropy(device(), {.logits = tl.tensor().Slice(1, 0, 40),
                          .targets = tt,
                          .loss_sum = loss,
                          .gradient = true});
  const Values got = tl.Read();
  EXPECT_GT(loss.Read()[0], 0);
  for (int r = 0; r < 4; ++r) {
    double sum = 0;
    for (int i = 0; i < 40; ++i) sum += got[r * 50 + i];
    EXPECT_NEAR(sum, 0, 1e-5);
    for (int i = 40; i < 50; ++i)
      EXPECT_EQ(got[r * 50 + i], logits[r * 50 + i]);
  }
}

TEST_P(CrossEntropyTest, NotANumberShows) {
  const TestTensor tl(device(), {1, 20}, Values(20, NAN));
  const TestTensor tt(device(), {1}, {3}, DType::kI32);
  const TestTensor loss(device(), {1}, {0}, DType::kF64);
  CrossEntropy(device(), {.logits = tl, .targets = tt, .loss_sum = loss});
  EXPECT_TRUE(std::isnan(loss.Read()[0]));
}

TROUPE_ON_EACH_DEVICE(CrossEntropyTest);

}  // namespace
}  // namespace troupe
