#include "worker/model/normalization.h"

#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kRows = 4;
constexpr int64_t kWidth = 11;

class NormalizationTest : public testing::TestWithParam<Normalization::Kind> {};

TEST_P(NormalizationTest, BackwardAgreesWithFiniteDifferences) {
  const bool layer_norm = GetParam() == Normalization::Kind::kLayerNorm;
  const auto device = NewCpuDevice({.threads = 1});
  std::vector<NamedShape> shapes = {{"n.weight", {kWidth}}};
  if (layer_norm) shapes.push_back({"n.bias", {kWidth}});
  const Unit unit = UnitWith(shapes);
  const auto norm = Normalization::Create(
      unit,
      {.kind = GetParam(), .prefix = "n", .width = kWidth, .epsilon = 0.1});
  ASSERT_TRUE(norm.ok());
  DeviceMemory parameters(*device, unit.flat_elements() * 4);
  DeviceMemory gradients(*device, unit.flat_elements() * 4);
  FillRandom(parameters.span(), 1);
  gradients.Zero();
  std::vector<float> x(kRows * kWidth), y(x), dy(x), dx(x), mean(kRows),
      rstd(kRows);
  FillRandom(absl::MakeSpan(x), 2);
  FillRandom(absl::MakeSpan(dy), 3);
  const auto rows = [](std::vector<float>& v) {
    return Tensor(v.data(), DType::kF32, {kRows, kWidth});
  };
  const Tensor means =
      layer_norm ? Tensor(mean.data(), DType::kF32, {kRows}) : Tensor();
  const Tensor rstds(rstd.data(), DType::kF32, {kRows});
  const auto loss = [&] {
    norm->Forward(*device, parameters.get(),
                  {.x = rows(x), .y = rows(y), .mean = means, .rstd = rstds});
    return Dot(y, dy);
  };
  loss();
  norm->BackwardInput(*device, parameters.get(),
                      {.dy = rows(dy),
                       .s = rows(x),
                       .mean = means,
                       .rstd = rstds,
                       .dx = rows(dx)});
  norm->BackwardWeight(
      *device, gradients.get(),
      {.dy = rows(dy), .s = rows(x), .mean = means, .rstd = rstds});
  EXPECT_LT(GradientError(loss, absl::MakeSpan(x), dx), 1e-3);
  EXPECT_LT(GradientError(loss, parameters.span(), gradients.span()), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Kinds, NormalizationTest,
                         testing::Values(Normalization::Kind::kLayerNorm,
                                         Normalization::Kind::kRmsNorm));

TEST(NormalizationRefusalTest, AUnitWithoutIt) {
  const Unit unit = UnitWith({{"n.weight", {kWidth}}});
  EXPECT_FALSE(
      Normalization::Create(unit, {.prefix = "n", .width = kWidth}).ok());
}

}  // namespace
}  // namespace troupe
