#include "worker/model/mlp.h"

#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kRows = 5;
constexpr int64_t kWidth = 6;
constexpr int64_t kIntermediate = 11;

TEST(MlpTest, BackwardAgreesWithFiniteDifferences) {
  const auto device = NewCpuDevice({.threads = 1});
  const Unit unit = UnitWith({{"mlp.c_fc.weight", {kWidth, kIntermediate}},
                              {"mlp.c_fc.bias", {kIntermediate}},
                              {"mlp.c_proj.weight", {kIntermediate, kWidth}},
                              {"mlp.c_proj.bias", {kWidth}}});
  const auto mlp = Mlp::Create(
      unit, {.prefix = "mlp", .width = kWidth, .intermediate = kIntermediate});
  ASSERT_TRUE(mlp.ok()) << mlp.status();
  DeviceMemory parameters(*device, unit.flat_elements() * 4);
  DeviceMemory gradients(*device, unit.flat_elements() * 4);
  FillRandom(parameters.span(), 1);
  gradients.Zero();
  std::vector<float> x(kRows * kWidth), y(x), dy(x), dx(x);
  std::vector<float> before(kRows * kIntermediate), after(before),
      d_before(before);
  FillRandom(absl::MakeSpan(x), 2);
  FillRandom(absl::MakeSpan(dy), 3);
  const auto rows = [](std::vector<float>& v) {
    return Tensor(v.data(), DType::kF32,
                  {kRows, static_cast<int64_t>(v.size()) / kRows});
  };
  const auto loss = [&] {
    mlp->Forward(*device, parameters.get(),
                 {.x = rows(x),
                  .before_gelu = rows(before),
                  .after_gelu = rows(after),
                  .y = rows(y)});
    return Dot(y, dy);
  };
  loss();
  mlp->BackwardInput(*device, parameters.get(),
                     {.dy = rows(dy),
                      .before_gelu = rows(before),
                      .d_before_gelu = rows(d_before),
                      .dx = rows(dx)});
  mlp->BackwardWeight(*device, gradients.get(),
                      {.x = rows(x),
                       .d_before_gelu = rows(d_before),
                       .after_gelu = rows(after),
                       .dy = rows(dy)});
  EXPECT_LT(GradientError(loss, absl::MakeSpan(x), dx), 1e-3);
  EXPECT_LT(GradientError(loss, parameters.span(), gradients.span()), 1e-3);
}

}  // namespace
}  // namespace troupe
