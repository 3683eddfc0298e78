#include "worker/model/joined_linear.h"

#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kRows = 5;

// Three projections to 8, 4 and 4 columns. With 8 inputs their weights fill
// cache lines and lie side by side; with 7 they do not. Biases never do.
struct Case {
  int64_t in;
  bool bias;
  int products;
};

class JoinedLinearShapesTest : public testing::TestWithParam<Case> {};

TEST_P(JoinedLinearShapesTest, IsItsProjectionsSideBySide) {
  const auto [in, bias, products] = GetParam();
  const auto device = NewCpuDevice({.threads = 1});
  std::vector<NamedShape> shapes = {
      {"q.weight", {8, in}}, {"k.weight", {4, in}}, {"v.weight", {4, in}}};
  if (bias) {
    shapes.push_back({"q.bias", {8}});
    shapes.push_back({"k.bias", {4}});
    shapes.push_back({"v.bias", {4}});
  }
  const Unit unit = UnitWith(shapes);
  const auto joined =
      JoinedLinear::Create(unit, {.projections = {{"q", 8}, {"k", 4}, {"v", 4}},
                                  .in = in,
                                  .layout = WeightLayout::kOutIn,
                                  .bias = bias});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->products(), products);

  DeviceMemory parameters(*device, unit.flat_elements() * 4);
  DeviceMemory gradients(*device, unit.flat_elements() * 4);
  FillRandom(parameters.span(), 1);
  gradients.Zero();
  std::vector<float> x(kRows * in), dx(x), y(kRows * 16), dy(y);
  FillRandom(absl::MakeSpan(x), 2);
  FillRandom(absl::MakeSpan(dy), 3);
  const auto rows = [](std::vector<float>& v) {
    return Tensor(v.data(), DType::kF32,
                  {kRows, static_cast<int64_t>(v.size()) / kRows});
  };
  const auto loss = [&] {
    joined->Forward(*device, parameters.get(), {.x = rows(x), .y = rows(y)});
    return Dot(y, dy);
  };
  loss();
  const float* k = parameters.floats() + unit.parameters(1).offset();
  for (int64_t row = 0; row < kRows; ++row) {
    double sum =
        bias ? parameters.floats()[unit.parameters(4).offset() + 2] : 0;
    for (int64_t i = 0; i < in; ++i) {
      sum += static_cast<double>(x[row * in + i]) * k[2 * in + i];
    }
    EXPECT_NEAR(y[row * 16 + 8 + 2], sum, 1e-5) << "column 2 of k";
  }
  joined->BackwardInput(*device, parameters.get(),
                        {.dy = rows(dy), .dx = rows(dx)});
  joined->BackwardWeight(*device, gradients.get(),
                         {.x = rows(x), .dy = rows(dy)});
  EXPECT_LT(GradientError(loss, absl::MakeSpan(x), dx), 1e-3);
  EXPECT_LT(GradientError(loss, parameters.span(), gradients.span()), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Shapes, JoinedLinearShapesTest,
                         testing::Values(Case{8, false, 1}, Case{7, false, 3},
                                         Case{8, true, 3}));

TEST(JoinedLinearTest, RefusesAMissingProjection) {
  const Unit unit = UnitWith({{"q.weight", {8, 4}}});
  EXPECT_FALSE(JoinedLinear::Create(unit, {.projections = {{"q", 8}, {"k", 8}},
                                           .in = 4,
                                           .layout = WeightLayout::kOutIn,
                                           .bias = false})
                   .ok());
}

}  // namespace
}  // namespace troupe
