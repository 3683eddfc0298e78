#include "worker/model/optimizer.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/plan/slices.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

// Flags that change twice, with an alignment gap behind each parameter.
Unit ThreeParameters() {
  Unit unit = UnitWith({{"a", {3, 7}}, {"b", {5}}, {"c", {2, 9}}});
  unit.mutable_parameters(0)->set_weight_decay(true);
  unit.mutable_parameters(2)->set_weight_decay(true);
  return unit;
}

OptimizerSpec AdamWSpec() {
  OptimizerSpec spec;
  spec.set_name("adamw");
  spec.add_betas(0.9);
  spec.add_betas(0.95);
  spec.set_eps(1e-8);
  spec.set_weight_decay(0.3);
  return spec;
}

OptimizerSpec SgdSpec(double momentum, bool nesterov) {
  OptimizerSpec spec;
  spec.set_name("sgd");
  spec.set_momentum(momentum);
  spec.set_nesterov(nesterov);
  spec.set_weight_decay(0.3);
  return spec;
}

// torch's update of one scalar, in double.
struct Scalar {
  double w, m = 0, v = 0;

  void Step(const OptimizerSpec& spec, double g, double lr, double decay,
            int64_t step) {
    if (spec.name() == "adamw") {
      const double b1 = spec.betas(0), b2 = spec.betas(1);
      w *= 1 - lr * decay;
      m = b1 * m + (1 - b1) * g;
      v = b2 * v + (1 - b2) * g * g;
      w -= lr / (1 - std::pow(b1, step)) * m /
           (std::sqrt(v) / std::sqrt(1 - std::pow(b2, step)) + spec.eps());
      return;
    }
    g += decay * w;
    m = spec.momentum() * m + g;
    w -= lr * (spec.nesterov() ? g + spec.momentum() * m : m);
  }
};

void ExpectSteps(const OptimizerSpec& spec) {
  const auto device = NewCpuDevice({.threads = 1});
  const Unit unit = ThreeParameters();
  const Optimizer optimizer(spec);
  const int64_t n = unit.flat_elements();
  DeviceMemory weights(*device, n * 4), gradients(*device, n * 4),
      state(*device, optimizer.StateBytes(n));
  weights.Zero();
  state.Zero();
  gradients.Zero();
  std::vector<Scalar> expected(n, Scalar{0});
  std::vector<double> decay(n, 0);
  std::vector<bool> gap(n, true);
  for (const Parameter& parameter : unit.parameters()) {
    int64_t elements = 1;
    for (const int64_t dim : WholeShape(parameter)) elements *= dim;
    const auto span = weights.span().subspan(parameter.offset(), elements);
    FillRandom(span, parameter.offset());
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t at = parameter.offset() + i;
      expected[at].w = span[i];
      decay[at] = parameter.weight_decay() ? spec.weight_decay() : 0;
      gap[at] = false;
    }
  }
  for (int64_t step = 1; step <= 3; ++step) {
    for (int64_t i = 0; i < n; ++i) {
      const float g = gap[i] ? 0 : std::sin(static_cast<float>(step * i + 1));
      gradients.span()[i] = g;
      expected[i].Step(spec, 0.5 * g, 0.01 * step, decay[i], step);
    }
    optimizer.Step(*device, unit,
                   {.weights = weights.get(),
                    .gradients = gradients.get(),
                    .state = state.get(),
                    .step = step,
                    .learning_rate = 0.01 * step,
                    .gradient_scale = 0.5});
  }
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_NEAR(weights.span()[i], expected[i].w, 1e-6) << i;
    EXPECT_EQ(gradients.span()[i], 0) << i;
  }
}

TEST(OptimizerTest, AdamWDecaysOnlyWhatAsksForIt) { ExpectSteps(AdamWSpec()); }
TEST(OptimizerTest, PlainSgd) { ExpectSteps(SgdSpec(0, false)); }
TEST(OptimizerTest, SgdWithMomentum) { ExpectSteps(SgdSpec(0.9, false)); }
TEST(OptimizerTest, SgdWithNesterov) { ExpectSteps(SgdSpec(0.9, true)); }

// Of bf16: the weights stay exact, and a copy of them is rounded.
TEST(OptimizerTest, RoundsTheNewWeightsWhereTheModelComputesInBf16) {
  const auto device = NewCpuDevice({.threads = 1});
  const Unit unit = ThreeParameters();
  const int64_t n = unit.flat_elements();
  for (const OptimizerSpec& spec : {AdamWSpec(), SgdSpec(0.9, false)}) {
    const Optimizer optimizer(spec);
    DeviceMemory weights(*device, n * 4), gradients(*device, n * 4),
        state(*device, optimizer.StateBytes(n)), parameters(*device, n * 2);
    FillRandom(weights.span(), 1);
    FillRandom(gradients.span(), 2);
    state.Zero();
    optimizer.Step(*device, unit,
                   {.weights = weights.get(),
                    .parameters = parameters.get(),
                    .gradients = gradients.get(),
                    .state = state.get(),
                    .learning_rate = 0.01});
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t bits =
          uint32_t{static_cast<const uint16_t*>(parameters.get())[i]} << 16;
      float rounded;
      std::memcpy(&rounded, &bits, sizeof(rounded));
      EXPECT_NEAR(rounded, weights.span()[i], std::abs(weights.span()[i]) / 256)
          << i;
    }
  }
}

TEST(OptimizerTest, StateBytesFollowTheKind) {
  EXPECT_EQ(Optimizer(AdamWSpec()).StateBytes(48), 2 * 48 * 4);
  EXPECT_EQ(Optimizer(SgdSpec(0.9, false)).StateBytes(48), 48 * 4);
  EXPECT_EQ(Optimizer(SgdSpec(0, false)).StateBytes(48), 0);
}

TEST(OptimizerTest, ClipsAsTorchDoes) {
  EXPECT_DOUBLE_EQ(ClipCoefficient(4.0, 1.0), 1.0 / (4.0 + 1e-6));
  EXPECT_EQ(ClipCoefficient(0.5, 1.0), 1.0);
  EXPECT_EQ(ClipCoefficient(0.0, 1.0), 1.0);
  EXPECT_EQ(ClipCoefficient(1e9, 0.0), 1.0);
}

}  // namespace
}  // namespace troupe
