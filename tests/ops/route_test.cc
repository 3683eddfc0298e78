#include "ops/route.h"

#include <algorithm>
#include <numeric>

#include "ops/router_loss.h"
#include "tests/ops/devices.h"

namespace troupe {
namespace {

class RouteTest : public OpTest {};

struct Sizes {
  int64_t n, e, k;
  int groups = 1, groups_used = 1;
};
const Sizes kSizes[] = {{1, 1, 1},       {3, 8, 2},         {17, 5, 5},
                        {6, 65, 8},      {2, 256, 8, 8, 4}, {33, 12, 4, 3, 2},
                        {9, 6, 2, 6, 2}, {70, 32, 1}};

std::ostream& operator<<(std::ostream& out, const Sizes& s) {
  return out << s.n << " tokens, " << s.k << " of " << s.e << " experts, "
             << s.groups_used << " of " << s.groups << " groups";
}

std::vector<RouteRule> RulesOf(const Sizes& s) {
  std::vector<RouteRule> rules;
  for (const RouteScores scores :
       {RouteScores::kSoftmax, RouteScores::kSigmoid}) {
    for (const bool renormalise : {false, true}) {
      rules.push_back({.scores = scores,
                       .renormalise = renormalise,
                       .scale = renormalise ? 2.5f : 1.0f,
                       .groups = s.groups,
                       .groups_used = s.groups_used});
    }
  }
  return rules;
}

double LogSumExp(const Values& x) {
  double sum = 0;
  for (const double v : x) sum += std::exp(v);
  return std::log(sum);
}

Values ScoresOf(const Values& x, RouteScores kind) {
  Values s = x;
  const double logsumexp = LogSumExp(x);
  for (double& v : s) {
    v = kind == RouteScores::kSoftmax ? std::exp(v - logsumexp)
                                      : 1 / (1 + std::exp(-v));
  }
  return s;
}

Values GatesOf(const Values& s, const std::vector<int>& choices,
               const RouteRule& rule) {
  double sum = rule.renormalise ? 0 : 1;
  if (rule.renormalise) {
    for (const int c : choices) sum += s[c];
  }
  Values gates;
  for (const int c : choices) gates.push_back(rule.scale * s[c] / sum);
  return gates;
}

// The largest first, of equal ones the lower.
std::vector<int> Sorted(const Values& keys, std::vector<int> indices) {
  std::stable_sort(indices.begin(), indices.end(),
                   [&](int a, int b) { return keys[a] > keys[b]; });
  return indices;
}

std::vector<int> ChoicesOf(Values keys, const Values& bias, int64_t k,
                           const RouteRule& rule) {
  const int in_group = static_cast<int>(keys.size()) / rule.groups;
  for (size_t i = 0; i < bias.size(); ++i) keys[i] += bias[i];
  Values group_scores;
  for (int group = 0; group < rule.groups; ++group) {
    Values own(keys.begin() + group * in_group,
               keys.begin() + (group + 1) * in_group);
    std::sort(own.rbegin(), own.rend());
    group_scores.push_back(own[0] + (in_group > 1 ? own[1] : 0));
  }
  std::vector<int> groups(rule.groups);
  std::iota(groups.begin(), groups.end(), 0);
  groups = Sorted(group_scores, groups);
  groups.resize(rule.groups_used);
  std::sort(groups.begin(), groups.end());
  std::vector<int> eligible;
  for (const int group : groups) {
    for (int i = 0; i < in_group; ++i) eligible.push_back(group * in_group + i);
  }
  std::vector<int> choices = Sorted(keys, eligible);
  choices.resize(k);
  return choices;
}

Values Row(const Values& all, int64_t row, int64_t columns) {
  return {all.begin() + row * columns, all.begin() + (row + 1) * columns};
}

void Append(Values& to, const Values& values) {
  to.insert(to.end(), values.begin(), values.end());
}

struct Routed {
  Values scores, choices, gates, logsumexp;
};
Routed Reference(const Sizes& s, const Values& logits, const Values& bias,
                 const RouteRule& rule) {
  Routed routed;
  for (int64_t row = 0; row < s.n; ++row) {
    const Values x = Row(logits, row, s.e);
    const Values scores = ScoresOf(x, rule.scores);
    const std::vector<int> choices = ChoicesOf(scores, bias, s.k, rule);
    Append(routed.scores, scores);
    Append(routed.choices, Values(choices.begin(), choices.end()));
    Append(routed.gates, GatesOf(scores, choices, rule));
    routed.logsumexp.push_back(LogSumExp(x));
  }
  return routed;
}

// What a device makes of logits.
Routed RouteOn(Device& device, const Sizes& s, const Values& logits,
               const Values& bias, const RouteRule& rule) {
  const TestTensor x(device, {s.n, s.e}, logits);
  const TestTensor tbias(device, {s.e}, bias.empty() ? Values(s.e) : bias);
  const TestTensor scores(device, DType::kF32, {s.n, s.e});
  const TestTensor choices(device, DType::kI32, {s.n, s.k});
  const TestTensor gates(device, DType::kF32, {s.n, s.k});
  const TestTensor logsumexp(device, DType::kF32, {s.n});
  Route(device, {.logits = x,
                 .bias = bias.empty() ? Tensor() : tbias.tensor(),
                 .rule = rule,
                 .scores = scores,
                 .choices = choices,
                 .gates = gates,
                 .logsumexp = logsumexp});
  return {scores.Read(), choices.Read(), gates.Read(), logsumexp.Read()};
}

TEST_P(RouteTest, Forward) {
  for (const Sizes& s : kSizes) {
    for (const RouteRule& rule : RulesOf(s)) {
      for (const bool biased : {false, true}) {
        const Values logits = Random(s.n * s.e, 2.0);
        const Values bias = biased ? Random(s.e, 0.2) : Values();
        const Routed want = Reference(s, logits, bias, rule);
        const Routed got = RouteOn(device(), s, logits, bias, rule);
        EXPECT_EQ(got.choices, want.choices) << s;
        EXPECT_LT(RelativeError(got.scores, want.scores), 1e-6) << s;
        EXPECT_LT(RelativeError(got.gates, want.gates), 1e-6) << s;
        // Which may be near zero.
        for (int64_t row = 0; row < s.n; ++row) {
          EXPECT_NEAR(got.logsumexp[row], want.logsumexp[row], 2e-6) << s;
        }
      }
    }
  }
}

TEST_P(RouteTest, ScoresInTheLogitsPlace) {
  for (const Sizes& s : kSizes) {
    for (const RouteRule& rule : RulesOf(s)) {
      const Values logits = Random(s.n * s.e);
      const Routed want = RouteOn(device(), s, logits, {}, rule);
      const TestTensor x(device(), {s.n, s.e}, logits);
      const TestTensor choices(device(), DType::kI32, {s.n, s.k});
      const TestTensor gates(device(), DType::kF32, {s.n, s.k});
      Route(device(), {.logits = x,
                       .rule = rule,
                       .scores = x,
                       .choices = choices,
                       .gates = gates});
      EXPECT_EQ(x.Read(), want.scores) << s;
      EXPECT_EQ(choices.Read(), want.choices) << s;
      EXPECT_EQ(gates.Read(), want.gates) << s;
    }
  }
}

// What the gates, the balance and the z of one token add to the loss. The last
// two come by RouterLossBackward.
struct Loss {
  RouteRule rule;
  std::vector<int> choices;
  Values d_gates, balance;  // or empty
  double z;

  double operator()(const Values& x) const {
    const Values s = ScoresOf(x, rule.scores);
    const Values gates = GatesOf(s, choices, rule);
    double loss = z * LogSumExp(x) * LogSumExp(x);
    for (size_t j = 0; j < gates.size(); ++j) loss += d_gates[j] * gates[j];
    const double sum = std::accumulate(s.begin(), s.end(), 0.0);
    for (size_t i = 0; i < balance.size(); ++i) {
      loss += balance[i] * s[i] / sum;
    }
    return loss;
  }
};

Values Slope(const Loss& loss, Values x) {
  constexpr double kStep = 1e-5;
  Values slope;
  for (double& v : x) {
    const double at = v;
    v = at + kStep;
    const double above = loss(x);
    v = at - kStep;
    slope.push_back((above - loss(x)) / (2 * kStep));
    v = at;
  }
  return slope;
}

// One may be zero but for the error of finite differences.
void ExpectClose(const Values& got, const Values& want) {
  double norm = 0;
  Values difference = got;
  for (size_t i = 0; i < got.size(); ++i) {
    difference[i] -= want[i];
    norm += want[i] * want[i];
  }
  const double error = RelativeError(difference, Values(got.size(), 0.0));
  EXPECT_LT(error, kF32Error * std::max(std::sqrt(norm), 1e-2));
}

TEST_P(RouteTest, BackwardIsTheSlopeOfGatesBalanceAndZ) {
  for (const Sizes& s : kSizes) {
    for (const RouteRule& rule : RulesOf(s)) {
      for (const int terms : {0, 1, 2, 3}) {
        const bool balanced = terms & 1;
        const float z = terms & 2 ? 0.125f : 0.0f;
        const int64_t sequences = s.n % 3 == 0 ? 3 : 1;
        const Values logits = Random(s.n * s.e);
        const Values balance = Random(sequences * s.e);
        const Values d_gates = Random(s.n * s.k);
        const Routed routed = Reference(s, logits, {}, rule);
        Values want;
        for (int64_t row = 0; row < s.n; ++row) {
          const Values chosen = Row(routed.choices, row, s.k);
          const int64_t sequence = row / (s.n / sequences);
          const Loss loss = {
              .rule = rule,
              .choices = {chosen.begin(), chosen.end()},
              .d_gates = Row(d_gates, row, s.k),
              .balance = balanced ? Row(balance, sequence, s.e) : Values(),
              .z = z};
          Append(want, Slope(loss, Row(logits, row, s.e)));
        }
        const TestTensor x(device(), {s.n, s.e}, logits);
        const TestTensor scores(device(), {s.n, s.e}, routed.scores);
        const TestTensor choices(device(), {s.n, s.k}, routed.choices,
                                 DType::kI32);
        const TestTensor tgates(device(), {s.n, s.k}, d_gates);
        const TestTensor tbalance(device(), {sequences, s.e}, balance);
        const TestTensor logsumexp(device(), {s.n}, routed.logsumexp);
        const TestTensor dx(device(), DType::kF32, {s.n, s.e});
        const TestTensor d_scores(device(), DType::kF32, {s.n, s.e});
        const TestTensor d_logsumexp(device(), DType::kF32, {s.n});
        RouteBackwardArgs args = {.scores = scores,
                                  .choices = choices,
                                  .d_gates = tgates,
                                  .rule = rule,
                                  .logsumexp = logsumexp,
                                  .logits = x,
                                  .d_logits = dx};
        if (balanced) args.d_scores = d_scores;
        if (z != 0) args.d_logsumexp = d_logsumexp;
        RouterLossBackward(device(), {.scores = scores,
                                      .load = tbalance,
                                      .load_scale = 0.5,
                                      .rows = {.tokens = s.n / sequences},
                                      .logsumexp = logsumexp,
                                      .balance_scale = 2,
                                      .z_scale = z,
                                      .d_scores = args.d_scores,
                                      .d_logsumexp = args.d_logsumexp});
        RouteBackward(device(), args);
        const Values got = dx.Read();
        SCOPED_TRACE(testing::Message() << s << ", terms " << terms);
        ExpectClose(got, want);
        args.d_logits = scores;
        RouteBackward(device(), args);
        EXPECT_EQ(scores.Read(), got) << "in the scores' place";
      }
    }
  }
}

TEST_P(RouteTest, OfEqualScoresTheLowerExpert) {
  const Sizes s = {2, 8, 3};
  for (const RouteRule& rule : RulesOf(s)) {
    const Routed got = RouteOn(device(), s,
                               {0, 0, 0, 0, 0, 0, 0, 0,  //
                                1, 3, 2, 3, 1, 2, 3, 3},
                               {}, rule);
    EXPECT_EQ(got.choices, (Values{0, 1, 2, 1, 3, 6}));
    EXPECT_EQ(got.gates[0], got.gates[2]);
  }
  // Groups {0, 1}, {2, 3}, ... have scores 5, 5, 4, 5 (by bias).
  const Sizes grouped = {1, 8, 2, 4, 2};
  for (RouteRule rule : RulesOf(grouped)) {
    const Routed got = RouteOn(device(), grouped, Values(8, 0.0),
                               {2, 3, 4, 1, 3.5, 0.5, 5, 0}, rule);
    EXPECT_EQ(got.choices, (Values{2, 1}));
  }
}

TEST_P(RouteTest, BiasChoosesAndIsNoPartOfTheGate) {
  const Sizes s = {1, 4, 2};
  for (const RouteRule& rule : RulesOf(s)) {
    const Values logits = {2, 1, 0, -1};
    const Routed got = RouteOn(device(), s, logits, {0, 0, 0, 9}, rule);
    EXPECT_EQ(got.choices, (Values{3, 0}));
    const Values gates = GatesOf(ScoresOf(logits, rule.scores), {3, 0}, rule);
    EXPECT_LT(RelativeError(got.gates, gates), 1e-6);
  }
}

TEST_P(RouteTest, NotANumberIsChosenFirst) {
  const Sizes s = {2, 6, 3};
  const Values logits = {0, NAN, 1, NAN, 2, 3,  //
                         0, 1,   2, 3,   4, 5};
  for (const RouteRule& rule : RulesOf(s)) {
    const Routed got = RouteOn(device(), s, logits, {}, rule);
    const bool sigmoid = rule.scores == RouteScores::kSigmoid;
    EXPECT_EQ(got.choices, sigmoid ? (Values{1, 3, 5, 5, 4, 3})
                                   : (Values{0, 1, 2, 5, 4, 3}));
    for (int j = 0; j < 6; ++j) {
      const bool nan = j < (sigmoid && !rule.renormalise ? 2 : 3);
      EXPECT_EQ(std::isnan(got.gates[j]), nan) << j;
    }
  }
  // Their group comes first too.
  const Sizes grouped = {1, 6, 3, 2, 1};
  for (const RouteRule& rule : RulesOf(grouped)) {
    if (rule.scores == RouteScores::kSoftmax) continue;
    const Routed got =
        RouteOn(device(), grouped, {9, 9, 9, 0, NAN, 1}, {}, rule);
    EXPECT_EQ(got.choices, (Values{4, 5, 3}));
  }
}

TEST_P(RouteTest, FarOut) {
  const Sizes s = {2, 4, 2};
  for (const RouteRule& rule : RulesOf(s)) {
    const Routed got = RouteOn(device(), s,
                               {-3e38, 3e38, 200, -200,  //
                                -INFINITY, 90, -90, -INFINITY},
                               {}, rule);
    for (const double score : got.scores) {
      EXPECT_GE(score, 0);
      EXPECT_LE(score, 1);
    }
    // Softmax leaves nothing to the others, of which the first is next.
    const bool softmax = rule.scores == RouteScores::kSoftmax;
    EXPECT_EQ(Row(got.choices, 0, 2),
              softmax ? (Values{1, 0}) : (Values{1, 2}));
    EXPECT_EQ(Row(got.choices, 1, 2)[0], 1);
    for (const double gate : got.gates) EXPECT_TRUE(std::isfinite(gate));
  }
}

// Also where a rank has rows from the middle of one sequence to the middle of
// another.
TEST_P(RouteTest, Load) {
  const Sizes s = {12, 5, 2};
  const Routed routed = Reference(s, Random(s.n * s.e), {}, {});
  const TestTensor choices(device(), {s.n, s.k}, routed.choices, DType::kI32);
  for (const TokenRows& rows : {TokenRows{}, TokenRows{.tokens = 4},
                                TokenRows{.first = 3, .tokens = 5}}) {
    const int64_t sequences = rows.Of(s.n - 1) + 1;
    Values want(sequences * s.e);
    for (int64_t row = 0; row < s.n; ++row) {
      for (const double choice : Row(routed.choices, row, s.k)) {
        ++want[rows.Of(row) * s.e + static_cast<int64_t>(choice)];
      }
    }
    const TestTensor load(device(), {sequences, s.e},
                          Values(sequences * s.e, 7.0));
    RouteLoad(device(), {.choices = choices, .rows = rows, .load = load});
    EXPECT_EQ(load.Read(), want) << rows.first;
    RouteLoad(
        device(),
        {.choices = choices, .rows = rows, .load = load, .accumulate = true});
    for (double& v : want) v *= 2;
    EXPECT_EQ(load.Read(), want) << rows.first;
  }
}

// Enough rows to be cut over threads.
TEST_P(RouteTest, TheSameOnAnyNumberOfThreads) {
  if (device().kind() != DeviceKind::kCpu) GTEST_SKIP() << "no threads";
  const Sizes s = {1000, 64, 6};
  const Values logits = Random(s.n * s.e), d_gates = Random(s.n * s.k);
  const Values balance = Random(4 * s.e);
  std::vector<Values> first;
  for (const int threads : {1, 2, 5}) {
    CpuDeviceOptions options = GetParam().cpu;
    options.threads = threads;
    const std::unique_ptr<Device> device = NewCpuDevice(options);
    const Routed routed = RouteOn(*device, s, logits, {}, {});
    const TestTensor scores(*device, {s.n, s.e}, routed.scores);
    const TestTensor choices(*device, {s.n, s.k}, routed.choices, DType::kI32);
    const TestTensor tgates(*device, {s.n, s.k}, d_gates);
    const TestTensor tbalance(*device, {4, s.e}, balance);
    const TestTensor d_scores(*device, DType::kF32, {s.n, s.e});
    RouterLossBackward(*device, {.scores = scores,
                                 .load = tbalance,
                                 .rows = {.tokens = s.n / 4},
                                 .balance_scale = 1,
                                 .d_scores = d_scores});
    RouteBackward(*device, {.scores = scores,
                            .choices = choices,
                            .d_gates = tgates,
                            .d_scores = d_scores,
                            .d_logits = scores});
    const std::vector<Values> got = {routed.scores, routed.choices,
                                     routed.gates, scores.Read()};
    if (first.empty()) first = got;
    EXPECT_EQ(got, first) << threads;
  }
}

TEST_P(RouteTest, WrongShapesDie) {
  const TestTensor x(device(), {2, 6}, Random(12));
  const TestTensor choices(device(), DType::kI32, {2, 3});
  const TestTensor gates(device(), DType::kF32, {2, 3});
  RouteArgs args = {
      .logits = x, .scores = x, .choices = choices, .gates = gates};
  args.rule.groups = 4;
  EXPECT_DEATH(Route(device(), args), "4 groups of 6 experts");
  args.rule = {.groups = 3, .groups_used = 1};
  EXPECT_DEATH(Route(device(), args), "3 choices among 2 experts");
  args.rule = {};
  args.gates = x;
  EXPECT_DEATH(Route(device(), args), "f32\\[2, 6\\]");
  const RouteBackwardArgs backward = {.scores = x,
                                      .choices = choices,
                                      .d_gates = gates,
                                      .d_logsumexp = x,
                                      .d_logits = x};
  EXPECT_DEATH(RouteBackward(device(), backward), "logsumexp");
}

TROUPE_ON_EACH_DEVICE(RouteTest);

}  // namespace
}  // namespace troupe
