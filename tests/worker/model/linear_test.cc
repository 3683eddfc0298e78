#include "worker/model/linear.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kRows = 5;
constexpr int64_t kIn = 7;
constexpr int64_t kOut = 9;

class LinearTest : public testing::Test {
 protected:
  LinearTest()
      : device_(NewCpuDevice({.threads = 1})),
        unit_(UnitWith({{"p.weight", {kIn, kOut}}, {"p.bias", {kOut}}})),
        linear_(*Linear::Create(unit_, "p", {.in = kIn, .out = kOut})),
        parameters_(*device_, unit_.flat_elements() * 4),
        gradients_(*device_, unit_.flat_elements() * 4),
        x_(kRows * kIn),
        y_(kRows * kOut),
        dy_(kRows * kOut) {
    FillRandom(parameters_.span(), 1);
    FillRandom(absl::MakeSpan(x_), 2);
    FillRandom(absl::MakeSpan(dy_), 3);
    gradients_.Zero();
  }

  Tensor X() { return Tensor(x_.data(), DType::kF32, {kRows, kIn}); }
  Tensor Y() { return Tensor(y_.data(), DType::kF32, {kRows, kOut}); }
  Tensor Dy() { return Tensor(dy_.data(), DType::kF32, {kRows, kOut}); }
  double BeforeGelu(int64_t row, int64_t column) {
    double sum = parameters_.span()[unit_.parameters(1).offset() + column];
    for (int64_t i = 0; i < kIn; ++i) {
      sum += static_cast<double>(x_[row * kIn + i]) *
             parameters_.span()[i * kOut + column];
    }
    return sum;
  }

  std::unique_ptr<Device> device_;
  const Unit unit_;
  const Linear linear_;
  DeviceMemory parameters_, gradients_;
  std::vector<float> x_, y_, dy_;
};

TEST_F(LinearTest, ForwardIsTheProductPlusTheBias) {
  linear_.Forward(*device_, parameters_.get(), {.x = X(), .y = Y()});
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kOut; ++column) {
      EXPECT_NEAR(y_[row * kOut + column], BeforeGelu(row, column), 1e-5);
    }
  }
}

TEST_F(LinearTest, GeluKeepsWhatWasBeforeIt) {
  std::vector<float> before(kRows * kOut);
  linear_.Forward(
      *device_, parameters_.get(),
      {.x = X(),
       .y = Y(),
       .gelu = true,
       .before_gelu = Tensor(before.data(), DType::kF32, {kRows, kOut})});
  for (int64_t i = 0; i < kRows * kOut; ++i) {
    const double x = BeforeGelu(i / kOut, i % kOut);
    EXPECT_NEAR(before[i], x, 1e-5);
    const double inner =
        std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x);
    EXPECT_NEAR(y_[i], 0.5 * x * (1 + std::tanh(inner)), 1e-5);
  }
}

TEST_F(LinearTest, BackwardAgreesWithFiniteDifferencesAndAdds) {
  std::vector<float> dx(kRows * kIn);
  linear_.BackwardInput(
      *device_, parameters_.get(),
      {.dy = Dy(), .dx = Tensor(dx.data(), DType::kF32, {kRows, kIn})});
  linear_.BackwardWeight(*device_, gradients_.get(), {.x = X(), .dy = Dy()});
  const auto loss = [&] {
    linear_.Forward(*device_, parameters_.get(), {.x = X(), .y = Y()});
    return Dot(y_, dy_);
  };
  EXPECT_LT(GradientError(loss, absl::MakeSpan(x_), dx), 1e-3);
  EXPECT_LT(GradientError(loss, parameters_.span(), gradients_.span()), 1e-3);

  const std::vector<float> once(gradients_.span().begin(),
                                gradients_.span().end());
  linear_.BackwardWeight(*device_, gradients_.get(), {.x = X(), .dy = Dy()});
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_NEAR(gradients_.span()[i], 2 * once[i], 1e-5);
  }

  // The same bits, whether zeros are added to or written over.
  for (float& gradient : gradients_.span()) gradient = 0;
  linear_.BackwardWeight(*device_, gradients_.get(),
                         {.x = X(), .dy = Dy(), .from_zero = true});
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(gradients_.span()[i], once[i]);
  }
}

TEST_F(LinearTest, RefusesWeightsOfAnotherShape) {
  EXPECT_FALSE(Linear::Create(unit_, "p", {.in = kOut, .out = kIn}).ok());
  EXPECT_FALSE(Linear::Create(unit_, "q", {.in = kIn, .out = kOut}).ok());
}

}  // namespace
}  // namespace troupe
