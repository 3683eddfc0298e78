#include "worker/model/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/plan/optimizer_rows.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"
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

OptimizerSpec LionSpec() {
  OptimizerSpec spec;
  spec.set_name("lion");
  spec.add_betas(0.9);
  spec.add_betas(0.99);
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

// AdamW, where the second of three parameters is trained by Lion at a tenth of
// the learning rate and the third by SGD. Laid as a plan lays them.
OptimizerSpec ThreeRules() {
  OptimizerSpec spec = AdamWSpec();
  const auto add = [&spec](const OptimizerSpec& rule, const char* match) {
    OptimizerGroup& group = *spec.add_groups();
    group.add_match(match);
    group.set_lr_scale(1);
    group.set_name(rule.name());
    *group.mutable_betas() = rule.betas();
    group.set_momentum(rule.momentum());
    return &group;
  };
  add(LionSpec(), "b")->set_lr_scale(0.1);
  add(SgdSpec(0, false), "c")->set_weight_decay(0.7);
  return spec;
}
Unit ThreeParts() {
  Unit unit = ThreeParameters();
  unit.clear_parts();
  for (int p = 0; p < unit.parameters_size(); ++p) {
    const int64_t end = p + 1 < unit.parameters_size()
                            ? unit.parameters(p + 1).offset()
                            : unit.flat_elements();
    Unit::Part& part = *unit.add_parts();
    part.set_elements(end - unit.parameters(p).offset());
    part.set_rule(p);
  }
  return unit;
}

// torch's update of one scalar, in double, and Lion's.
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
    if (spec.name() == "lion") {
      const double c = spec.betas(0) * m + (1 - spec.betas(0)) * g;
      w = w * (1 - lr * decay) - lr * ((c > 0) - (c < 0));
      m = spec.betas(1) * m + (1 - spec.betas(1)) * g;
      return;
    }
    g += decay * w;
    m = spec.momentum() * m + g;
    w -= lr * (spec.nesterov() ? g + spec.momentum() * m : m);
  }
};

// `cuts`: the unit's elements are updated in as many calls as there are slices
// between these, each with a state of its own, as ranks do that have a slice.
void ExpectSteps(const OptimizerSpec& spec,
                 const Unit& unit = ThreeParameters(),
                 std::vector<int64_t> cuts = {}) {
  const auto device = NewCpuDevice({.threads = 1});
  const Optimizer optimizer(spec);
  const int64_t n = unit.flat_elements();
  cuts.insert(cuts.begin(), 0);
  cuts.push_back(n);
  DeviceMemory weights(*device, n * 4), gradients(*device, n * 4),
      state(*device, optimizer.StateBytes(unit));
  weights.Zero();
  state.Zero();
  gradients.Zero();
  std::vector<Scalar> expected(n, Scalar{0});
  std::vector<double> decay(n, 0);
  std::vector<int> rule(n, 0);
  std::vector<bool> gap(n, true);
  for (const Parameter& parameter : unit.parameters()) {
    int64_t elements = 1;
    for (const int64_t dim : WholeShape(parameter)) elements *= dim;
    const auto span = weights.span().subspan(parameter.offset(), elements);
    FillRandom(span, parameter.offset());
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t at = parameter.offset() + i;
      expected[at].w = span[i];
      rule[at] = RuleOf(spec, parameter.name());
      decay[at] = parameter.weight_decay()
                      ? SettingsOf(spec, rule[at]).weight_decay()
                      : 0;
      gap[at] = false;
    }
  }
  for (int64_t step = 1; step <= 3; ++step) {
    for (int64_t i = 0; i < n; ++i) {
      const float g = gap[i] ? 0 : std::sin(static_cast<float>(step * i + 1));
      gradients.span()[i] = g;
      expected[i].Step(SettingsOf(spec, rule[i]), 0.5 * g,
                       0.01 * step * LearningRateScale(spec, rule[i]), decay[i],
                       step);
    }
    float* slice_state = state.floats();
    for (size_t c = 0; c + 1 < cuts.size(); ++c) {
      const Range slice = {cuts[c], cuts[c + 1]};
      const absl::Status stepped =
          optimizer.Step(*device, unit,
                         {.weights = weights.floats() + slice.begin,
                          .gradients = gradients.floats() + slice.begin,
                          .state = slice_state,
                          .step = step,
                          .learning_rate = 0.01 * step,
                          .gradient_scale = 0.5,
                          .holds = slice});
      EXPECT_TRUE(stepped.ok()) << stepped;
      slice_state += StateElements(spec, unit, slice);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_NEAR(weights.span()[i], expected[i].w, 1e-6) << i;
    EXPECT_EQ(gradients.span()[i], 0) << i;
  }
}

// An optimizer CHECKs that it has an update for each rule.
TEST(OptimizerTest, HasARowForEachRule) {
  for (const OptimizerRow& row : OptimizerRows()) {
    OptimizerSpec spec;
    spec.set_name(std::string(row.name));
    const Optimizer optimizer(spec);
  }
}

TEST(OptimizerTest, AdamWDecaysOnlyWhatAsksForIt) { ExpectSteps(AdamWSpec()); }
TEST(OptimizerTest, PlainSgd) { ExpectSteps(SgdSpec(0, false)); }
TEST(OptimizerTest, SgdWithMomentum) { ExpectSteps(SgdSpec(0.9, false)); }
TEST(OptimizerTest, SgdWithNesterov) { ExpectSteps(SgdSpec(0.9, true)); }

TEST(OptimizerTest, Lion) { ExpectSteps(LionSpec()); }

// Also where a slice begins or ends within a part, or has none of some rule.
TEST(OptimizerTest, EachPartByItsRule) {
  const Unit unit = ThreeParts();
  ExpectSteps(ThreeRules(), unit);
  const int64_t second = unit.parts(0).elements();
  const int64_t third = second + unit.parts(1).elements();
  ExpectSteps(ThreeRules(), unit, {second - 3, second + 2});
  ExpectSteps(ThreeRules(), unit, {second, third});
  ExpectSteps(ThreeRules(), unit, {second + 2, third + 5});
}

OptimizerSpec AdafactorSpec() {
  OptimizerSpec spec;
  spec.set_name("adafactor");
  spec.set_weight_decay(0.3);
  spec.set_decay_rate(-0.8);
  spec.set_eps1(1e-12);
  spec.set_eps2(1e-3);
  spec.set_scale_parameter(true);
  return spec;
}

// One matrix or vector, in double.
struct Factored {
  int64_t rows, columns;
  bool is_vector;
  double decay;
  std::vector<double> w, row, column, second;

  void Step(const std::vector<double>& g, double lr, int64_t step) {
    const double kept = 1 - std::pow(step, -0.8);
    const auto blend = [kept](double& moment, double square, double of) {
      moment += (1 - kept) * (square + 1e-12) / of;
    };
    for (auto* const moment : {&row, &column, &second}) {
      for (double& m : *moment) m *= kept;
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const double square = g[i * columns + j] * g[i * columns + j];
        blend(row[i], square, static_cast<double>(columns));
        blend(column[j], square, static_cast<double>(rows));
        blend(second[i * columns + j], square, 1);
      }
    }
    double mean = 0;
    for (const double r : row) mean += r / static_cast<double>(rows);
    std::vector<double> u(g.size());
    double of_update = 0, of_weights = 0;
    for (size_t at = 0; at < u.size(); ++at) {
      const double v = is_vector
                           ? second[at]
                           : row[at / columns] * column[at % columns] / mean;
      u[at] = g[at] / std::sqrt(v);
      of_update += u[at] * u[at] / static_cast<double>(u.size());
      of_weights += w[at] * w[at] / static_cast<double>(u.size());
    }
    const double size = lr * std::max(1e-3, std::sqrt(of_weights));
    for (size_t at = 0; at < u.size(); ++at) {
      w[at] -=
          size * (decay * w[at] + u[at] / std::max(1.0, std::sqrt(of_update)));
    }
  }
};

// Matrices, several of them in one parameter, and vectors; also where slices
// end between parameters, or have gaps only.
TEST(OptimizerTest, AdafactorTrainsWholeMatricesAndVectors) {
  Unit unit = UnitWith({{"a", {3, 7}},
                        {"b", {5}},
                        {"c", {4, 2, 9}},
                        {"d", {21}},
                        {"e", {9, 2}}});
  for (Parameter& parameter : *unit.mutable_parameters()) {
    parameter.set_weight_decay(parameter.dims_size() > 1);
  }
  const OptimizerSpec spec = AdafactorSpec();
  const auto device = NewCpuDevice({.threads = 1});
  const Optimizer optimizer(spec);
  const int64_t n = unit.flat_elements();
  const int64_t states = 3 + 7 + 5 + 4 * (2 + 9) + 21 + 9 + 2;
  EXPECT_EQ(optimizer.StateBytes(unit), states * 4);
  const auto begin_of = [&unit](int p) { return unit.parameters(p).offset(); };
  for (const std::vector<int64_t>& ends : std::vector<std::vector<int64_t>>{
           {n},
           {begin_of(1), begin_of(2) - 1, begin_of(2), n},
           {begin_of(3), n}}) {
    DeviceMemory weights(*device, n * 4), gradients(*device, n * 4),
        state(*device, states * 4),
        workspace(*device, StepWorkspaceBytes(spec, unit));
    weights.Zero();
    gradients.Zero();
    state.Zero();
    std::vector<Factored> expected;
    std::vector<int64_t> offsets;
    for (const Parameter& parameter : unit.parameters()) {
      const auto [count, rows, columns] = MatricesOf(parameter);
      for (int64_t m = 0; m < count; ++m) {
        const int64_t each = rows * columns;
        offsets.push_back(parameter.offset() + m * each);
        const auto span = weights.span().subspan(offsets.back(), each);
        FillRandom(span, offsets.back());
        expected.push_back({.rows = rows,
                            .columns = columns,
                            .is_vector = parameter.dims_size() == 1,
                            .decay = parameter.weight_decay() ? 0.3 : 0,
                            .w = std::vector<double>(span.begin(), span.end()),
                            .row = std::vector<double>(rows),
                            .column = std::vector<double>(columns),
                            .second = std::vector<double>(each)});
      }
    }
    for (int64_t step = 1; step <= 3; ++step) {
      for (size_t m = 0; m < expected.size(); ++m) {
        std::vector<double> g(expected[m].w.size());
        for (size_t i = 0; i < g.size(); ++i) {
          const float value =
              std::sin(static_cast<float>(step * (offsets[m] + i) + 1));
          gradients.span()[offsets[m] + i] = value;
          g[i] = 0.5 * value;
        }
        expected[m].Step(g, 0.01 * step, step);
      }
      float* slice_state = state.floats();
      int64_t begin = 0;
      for (const int64_t end : ends) {
        const Range slice = {begin, end};
        const absl::Status stepped =
            optimizer.Step(*device, unit,
                           {.weights = weights.floats() + begin,
                            .gradients = gradients.floats() + begin,
                            .state = slice_state,
                            .step = step,
                            .learning_rate = 0.01 * step,
                            .gradient_scale = 0.5,
                            .holds = slice,
                            .workspace = workspace.get()});
        EXPECT_TRUE(stepped.ok()) << stepped;
        slice_state += StateElements(spec, unit, slice);
        begin = end;
      }
      EXPECT_EQ(slice_state, state.floats() + states);
    }
    for (size_t m = 0; m < expected.size(); ++m) {
      for (size_t i = 0; i < expected[m].w.size(); ++i) {
        EXPECT_NEAR(weights.span()[offsets[m] + i], expected[m].w[i], 1e-6)
            << m << " " << i;
        EXPECT_EQ(gradients.span()[offsets[m] + i], 0);
      }
    }
  }
}

// Of bf16: the weights stay exact, and a copy of them is rounded.
TEST(OptimizerTest, RoundsTheNewWeightsWhereTheModelComputesInBf16) {
  const auto device = NewCpuDevice({.threads = 1});
  const Unit unit = ThreeParameters();
  const int64_t n = unit.flat_elements();
  for (const OptimizerSpec& spec :
       {AdamWSpec(), LionSpec(), SgdSpec(0.9, false)}) {
    const Optimizer optimizer(spec);
    DeviceMemory weights(*device, n * 4), gradients(*device, n * 4),
        state(*device, optimizer.StateBytes(unit)), parameters(*device, n * 2);
    FillRandom(weights.span(), 1);
    FillRandom(gradients.span(), 2);
    state.Zero();
    const absl::Status stepped = optimizer.Step(*device, unit,
                                                {.weights = weights.get(),
                                                 .parameters = parameters.get(),
                                                 .gradients = gradients.get(),
                                                 .state = state.get(),
                                                 .learning_rate = 0.01});
    ASSERT_TRUE(stepped.ok()) << stepped;
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
  const Unit unit = ThreeParts();
  const int64_t n = unit.flat_elements();
  const int64_t a = unit.parts(0).elements(), b = unit.parts(1).elements();
  EXPECT_EQ(Optimizer(ThreeRules()).StateBytes(unit), (2 * a + b) * 4);
  const Unit plain = ThreeParameters();
  EXPECT_EQ(Optimizer(AdamWSpec()).StateBytes(plain), 2 * n * 4);
  EXPECT_EQ(Optimizer(SgdSpec(0.9, false)).StateBytes(plain), n * 4);
  EXPECT_EQ(Optimizer(SgdSpec(0, false)).StateBytes(plain), 0);
}

TEST(OptimizerTest, ClipsAsTorchDoes) {
  EXPECT_DOUBLE_EQ(ClipCoefficient(4.0, 1.0), 1.0 / (4.0 + 1e-6));
  EXPECT_EQ(ClipCoefficient(0.5, 1.0), 1.0);
  EXPECT_EQ(ClipCoefficient(0.0, 1.0), 1.0);
  EXPECT_EQ(ClipCoefficient(1e9, 0.0), 1.0);
}

}  // namespace
}  // namespace troupe
