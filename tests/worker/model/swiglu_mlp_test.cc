#include "worker/model/swiglu_mlp.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kRows = 5;
constexpr int64_t kWidth = 6;
constexpr int64_t kIntermediate = 11;

class SwiGluMlpTest : public testing::TestWithParam<bool> {};

TEST_P(SwiGluMlpTest, ForwardIsThePaperAndBackwardItsDifferences) {
  const bool bias = GetParam();
  const auto device = NewCpuDevice({.threads = 1});
  std::vector<NamedShape> shapes = {
      {"mlp.gate_proj.weight", {kIntermediate, kWidth}},
      {"mlp.up_proj.weight", {kIntermediate, kWidth}},
      {"mlp.down_proj.weight", {kWidth, kIntermediate}}};
  if (bias) {
    shapes.push_back({"mlp.gate_proj.bias", {kIntermediate}});
    shapes.push_back({"mlp.up_proj.bias", {kIntermediate}});
    shapes.push_back({"mlp.down_proj.bias", {kWidth}});
  }
  const Unit unit = UnitWith(shapes);
  const auto mlp = SwiGluMlp::Create(unit, {.prefix = "mlp",
                                            .width = kWidth,
                                            .intermediate = kIntermediate,
                                            .bias = bias});
  ASSERT_TRUE(mlp.ok()) << mlp.status();
  DeviceMemory parameters(*device, unit.flat_elements() * 4);
  DeviceMemory gradients(*device, unit.flat_elements() * 4);
  FillRandom(parameters.span(), 1);
  gradients.Zero();
  std::vector<float> x(kRows * kWidth), y(x), dy(x), dx(x);
  std::vector<float> gate_up(kRows * 2 * kIntermediate), d_gate_up(gate_up);
  std::vector<float> gated(kRows * kIntermediate), d_gated(gated);
  FillRandom(absl::MakeSpan(x), 2);
  FillRandom(absl::MakeSpan(dy), 3);
  const auto rows = [](std::vector<float>& v) {
    return Tensor(v.data(), DType::kF32,
                  {kRows, static_cast<int64_t>(v.size()) / kRows});
  };
  const auto loss = [&] {
    mlp->Forward(*device, parameters.get(),
                 {.x = rows(x),
                  .gate_up = rows(gate_up),
                  .gated = rows(gated),
                  .y = rows(y)});
    return Dot(y, dy);
  };
  loss();
  for (int64_t i = 0; i < kRows * kIntermediate; ++i) {
    const float* row = gate_up.data() + i / kIntermediate * 2 * kIntermediate;
    const double gate = row[i % kIntermediate];
    const double up = row[kIntermediate + i % kIntermediate];
    EXPECT_NEAR(gated[i], gate / (1 + std::exp(-gate)) * up, 1e-5);
  }
  mlp->BackwardInput(*device, parameters.get(),
                     {.dy = rows(dy),
                      .gate_up = rows(gate_up),
                      .d_gated = rows(d_gated),
                      .d_gate_up = rows(d_gate_up),
                      .dx = rows(dx)});
  mlp->BackwardWeight(*device, gradients.get(),
                      {.x = rows(x),
                       .d_gate_up = rows(d_gate_up),
                       .gated = rows(gated),
                       .dy = rows(dy)});
  EXPECT_LT(GradientError(loss, absl::MakeSpan(x), dx), 2e-3);
  EXPECT_LT(GradientError(loss, parameters.span(), gradients.span()), 2e-3);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutBias, SwiGluMlpTest, testing::Bool());

}  // namespace
}  // namespace troupe
