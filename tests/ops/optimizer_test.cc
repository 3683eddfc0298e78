#include "ops/optimizer.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

struct Types {
  DType copy, gradients;
};

class OptimizerTest : public OpTest {
 protected:
  std::vector<Types> AllTypes() const {
    std::vector<Types> types;
    for (const DType copy : ActivationTypes()) {
      for (const DType gradients : GradientTypes(copy)) {
        types.push_back({copy, gradients});
      }
    }
    return types;
  }
};

TEST_P(OptimizerTest, AdamWOverSomeSteps) {
  for (const Types& types : AllTypes()) {
    for (int64_t n : {1, 17, 129, 40003}) {
      const double lr = 0.01, b1 = 0.9, b2 = 0.95, eps = 1e-8, decay = 0.1;
      Values w = Random(n), m(n), v(n);
      const TestTensor tw(device(), {n}, w), tm(device(), {n}, m);
      const TestTensor tv(device(), {n}, v), copy(device(), types.copy, {n});
      for (int step = 1; step <= 3; ++step) {
        const Values g = Random(types.gradients, n);
        for (int64_t i = 0; i < n; ++i) {
          const double scaled = 0.5 * g[i];
          w[i] *= 1 - lr * decay;
          m[i] = b1 * m[i] + (1 - b1) * scaled;
          v[i] = b2 * v[i] + (1 - b2) * scaled * scaled;
          w[i] -= lr / (1 - std::pow(b1, step)) * m[i] /
                  (std::sqrt(v[i]) / std::sqrt(1 - std::pow(b2, step)) + eps);
        }
        const TestTensor tg(device(), {n}, g, types.gradients);
        AdamW(device(), {.weights = tw,
                         .gradients = tg,
                         .first_moment = tm,
                         .second_moment = tv,
                         .parameters = copy,
                         .learning_rate = 0.01f,
                         .beta1 = 0.9f,
                         .beta2 = 0.95f,
                         .epsilon = 1e-8f,
                         .weight_decay = 0.1f,
                         .step = step,
                         .gradient_scale = 0.5f,
                         .zero_gradients = step == 3});
        EXPECT_EQ(tg.Read(), step == 3 ? Values(n) : g);
      }
      EXPECT_LT(RelativeError(tw.Read(), w), kF32Error) << n;
      EXPECT_LT(RelativeError(tm.Read(), m), kF32Error) << n;
      EXPECT_LT(RelativeError(tv.Read(), v), kF32Error) << n;
      EXPECT_EQ(copy.Read(), AsStored(types.copy, tw.Read()));
    }
  }
}

// Signs are of sums that are no smaller than their rounding errors, so that the
// reference has the same; some elements have neither a moment nor a gradient.
TEST_P(OptimizerTest, LionOverSomeSteps) {
  for (const Types& types : AllTypes()) {
    for (int64_t n : {1, 17, 129, 40003}) {
      const double lr = 0.01, b1 = 0.9, b2 = 0.99, decay = 0.1;
      Values w = Random(n), m(n);
      const TestTensor tw(device(), {n}, w), tm(device(), {n}, m);
      const TestTensor copy(device(), types.copy, {n});
      for (int step = 1; step <= 3; ++step) {
        Values g = Random(types.gradients, n);
        for (int64_t i = 0; i < n; ++i) {
          const bool unclear =
              std::abs(b1 * m[i] + (1 - b1) * 0.5 * g[i]) < 1e-6;
          if (i % 7 == 3 || unclear) g[i] = 0;
          const double scaled = 0.5 * g[i];
          const double c = b1 * m[i] + (1 - b1) * scaled;
          w[i] = w[i] * (1 - lr * decay) - lr * ((c > 0) - (c < 0));
          m[i] = b2 * m[i] + (1 - b2) * scaled;
        }
        const TestTensor tg(device(), {n}, g, types.gradients);
        Lion(device(), {.weights = tw,
                        .gradients = tg,
                        .moment = tm,
                        .parameters = copy,
                        .learning_rate = 0.01f,
                        .beta1 = 0.9f,
                        .beta2 = 0.99f,
                        .weight_decay = 0.1f,
                        .gradient_scale = 0.5f,
                        .zero_gradients = step == 3});
        EXPECT_EQ(tg.Read(), step == 3 ? Values(n) : g);
      }
      EXPECT_LT(RelativeError(tw.Read(), w), kF32Error) << n;
      EXPECT_LT(RelativeError(tm.Read(), m), kF32Error) << n;
      EXPECT_EQ(copy.Read(), AsStored(types.copy, tw.Read()));
    }
  }
}

TEST_P(OptimizerTest, PartsOfAFlatBufferAreUpdatedAlike) {
  const int64_t n = 1000;
  const Values w = Random(n), g = Random(n), m = Random(n), v(n, 0.3);
  const auto update = [&](const std::vector<int64_t>& cuts) {
    const TestTensor tw(device(), {n}, w), tg(device(), {n}, g);
    const TestTensor tm(device(), {n}, m), tv(device(), {n}, v);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      const auto part = [&](const TestTensor& t) {
        return t.tensor().Slice(0, cuts[i], cuts[i + 1]);
      };
      AdamW(device(), {.weights = part(tw),
                       .gradients = part(tg),
                       .first_moment = part(tm),
                       .second_moment = part(tv),
                       .learning_rate = 0.1f,
                       .step = 7});
    }
    return tw.Read();
  };
  EXPECT_EQ(update({0, n}), update({0, 1, 333, 700, 703, n}));
}

// One call that says where decay ends and begins is a call for each run of
// elements that decay alike, bit for bit.
TEST_P(OptimizerTest, SomeElementsDecay) {
  const int64_t n = 1000;
  const Values w = Random(n), g = Random(n), m = Random(n), v(n, 0.3);
  struct Call {
    int64_t begin, end;
    float weight_decay;
    std::vector<int64_t> turns;
  };
  enum class Op { kAdamW, kLion, kSgd };
  const auto update = [&](Op op, const std::vector<Call>& calls) {
    const TestTensor tw(device(), {n}, w), tg(device(), {n}, g);
    const TestTensor tm(device(), {n}, m), tv(device(), {n}, v);
    for (const Call& call : calls) {
      const auto part = [&](const TestTensor& t) {
        return t.tensor().Slice(0, call.begin, call.end);
      };
      if (op == Op::kLion) {
        Lion(device(), {.weights = part(tw),
                        .gradients = part(tg),
                        .moment = part(tm),
                        .learning_rate = 0.1f,
                        .weight_decay = call.weight_decay,
                        .decay_turns = call.turns});
      } else if (op == Op::kAdamW) {
        AdamW(device(), {.weights = part(tw),
                         .gradients = part(tg),
                         .first_moment = part(tm),
                         .second_moment = part(tv),
                         .learning_rate = 0.1f,
                         .weight_decay = call.weight_decay,
                         .decay_turns = call.turns,
                         .step = 7});
      } else {
        Sgd(device(), {.weights = part(tw),
                       .gradients = part(tg),
                       .momentum_buffer = part(tm),
                       .learning_rate = 0.1f,
                       .momentum = 0.9f,
                       .weight_decay = call.weight_decay,
                       .decay_turns = call.turns});
      }
    }
    return tw.Read();
  };
  std::vector<int64_t> many(kDecayTurnsMax);
  for (size_t i = 0; i < many.size(); ++i) many[i] = 7 * i;
  for (const std::vector<int64_t>& turns : std::vector<std::vector<int64_t>>{
           {0}, {1}, {0, 3, 4, 5, 333, 700}, {16, 16, 512, n}, many}) {
    std::vector<Call> runs;
    int64_t begin = 0;
    for (size_t i = 0; i <= turns.size(); ++i) {
      const int64_t end = i < turns.size() ? turns[i] : n;
      if (end > begin) runs.push_back({begin, end, i % 2 == 0 ? 0.5f : 0, {}});
      begin = end;
    }
    for (const Op op : {Op::kAdamW, Op::kLion, Op::kSgd}) {
      EXPECT_EQ(update(op, {{0, n, 0.5f, turns}}), update(op, runs));
    }
  }
}

TEST_P(OptimizerTest, SgdOverSomeSteps) {
  for (const bool nesterov : {false, true}) {
    for (const double momentum : {0.0, 0.9}) {
      for (const Types& types : AllTypes()) {
        const int64_t n = 129;
        Values w = Random(n), u(n);
        const TestTensor tw(device(), {n}, w), tu(device(), {n}, u);
        const TestTensor copy(device(), types.copy, {n});
        for (int step = 1; step <= 3; ++step) {
          const Values gradient = Random(types.gradients, n);
          for (int64_t i = 0; i < n; ++i) {
            const double g = 2 * gradient[i] + 0.1 * w[i];
            u[i] = step == 1 ? g : momentum * u[i] + g;
            const double move = momentum == 0 ? g
                                : nesterov    ? g + momentum * u[i]
                                              : u[i];
            w[i] -= 0.05 * move;
          }
          const TestTensor tg(device(), {n}, gradient, types.gradients);
          Sgd(device(), {.weights = tw,
                         .gradients = tg,
                         .momentum_buffer = momentum == 0 ? Tensor() : tu,
                         .parameters = copy,
                         .learning_rate = 0.05f,
                         .momentum = static_cast<float>(momentum),
                         .nesterov = nesterov,
                         .weight_decay = 0.1f,
                         .gradient_scale = 2.0f,
                         .zero_gradients = true});
          EXPECT_EQ(tg.Read(), Values(n));
        }
        EXPECT_LT(RelativeError(tw.Read(), w), kF32Error);
        EXPECT_EQ(copy.Read(), AsStored(types.copy, tw.Read()));
      }
    }
  }
}

TROUPE_ON_EACH_DEVICE(OptimizerTest);

}  // namespace
}  // namespace troupe
