#include "worker/model/lm_head.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kRows = 6;
constexpr int64_t kWidth = 5;
constexpr int64_t kVocab = 13;
constexpr int64_t kStride = 16;

class LmHeadTest : public testing::Test {
 protected:
  LmHeadTest()
      : device_(NewCpuDevice({.threads = 1})),
        unit_(UnitWith({{"w", {kVocab, kWidth}}})),
        head_(*FindParameter(unit_, "w", {kVocab, kWidth})),
        parameters_(*device_, unit_.flat_elements() * 4),
        gradients_(*device_, unit_.flat_elements() * 4) {
    FillRandom(parameters_.span(), 1);
    FillRandom(absl::MakeSpan(x_), 2);
    gradients_.Zero();
  }

  Tensor X() { return Tensor(x_.data(), DType::kF32, {kRows, kWidth}); }
  Tensor Logits() {
    return Tensor(logits_.data(), DType::kF32, {kRows, kStride})
        .Slice(1, 0, kVocab);
  }
  double Loss(bool gradient) {
    double loss_sum = 0;
    count_ = 0;
    head_.Project(*device_, parameters_.get(), {.x = X(), .logits = Logits()});
    head_.Loss(*device_, {.logits = Logits(),
                          .targets = targets_,
                          .gradient = gradient,
                          .gradient_scale = 0.25,
                          .loss_sum = &loss_sum,
                          .count = &count_});
    return loss_sum * 0.25;
  }

  std::unique_ptr<Device> device_;
  const Unit unit_;
  const LmHead head_;
  DeviceMemory parameters_, gradients_;
  std::vector<float> x_ = std::vector<float>(kRows * kWidth);
  std::vector<float> logits_ = std::vector<float>(kRows * kStride);
  const int32_t targets_[kRows] = {0, 12, -1, 5, -1, 5};
  double count_ = 0;
};

TEST_F(LmHeadTest, LossAndCountLeaveOutWhatDoesNotCount) {
  const double loss = Loss(false);
  EXPECT_EQ(count_, 4);
  double expected = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    if (targets_[row] < 0) continue;
    double sum = 0;
    double target = 0;
    for (int64_t v = 0; v < kVocab; ++v) {
      double logit = 0;
      for (int64_t i = 0; i < kWidth; ++i) {
        logit += static_cast<double>(x_[row * kWidth + i]) *
                 parameters_.span()[v * kWidth + i];
      }
      EXPECT_NEAR(logits_[row * kStride + v], logit, 1e-5);
      sum += std::exp(logit);
      if (v == targets_[row]) target = logit;
    }
    expected += std::log(sum) - target;
  }
  EXPECT_NEAR(loss, 0.25 * expected, 1e-5);
}

TEST_F(LmHeadTest, BackwardAgreesWithFiniteDifferences) {
  Loss(true);
  std::vector<float> dx(kRows * kWidth);
  head_.BackwardInput(*device_, parameters_.get(),
                      {.d_logits = Logits(),
                       .dx = Tensor(dx.data(), DType::kF32, {kRows, kWidth})});
  head_.BackwardWeight(*device_, gradients_.get(),
                       {.x = X(), .d_logits = Logits()});
  const auto loss = [&] { return Loss(false); };
  EXPECT_LT(GradientError(loss, absl::MakeSpan(x_), dx), 1e-3);
  EXPECT_LT(GradientError(loss, parameters_.span(), gradients_.span()), 1e-3);
}

}  // namespace
}  // namespace troupe
