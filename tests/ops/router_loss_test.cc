#include "ops/router_loss.h"

#include <cmath>
#include <functional>
#include <numeric>

#include "ops/capacity.h"
#include "ops/load_step.h"
#include "ops/route.h"
#include "tests/ops/devices.h"

namespace troupe {
namespace {

class RouterLossTest : public OpTest {};

struct Sums {
  TestTensor balance, z, entropy, rows, tokens;
  Sums(Device& device, int64_t e)
      : balance(device, {1}, {0}, DType::kF64),
        z(device, {1}, {0}, DType::kF64),
        entropy(device, {1}, {0}, DType::kF64),
        rows(device, {1}, {0}, DType::kF64),
        tokens(device, {e}, Values(e, 0.0), DType::kF64) {}
};

double SumOf(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST_P(RouterLossTest, Forward) {
  constexpr int64_t n = 6, e = 4, k = 2;
  Values scores = Random(n * e);
  for (double& s : scores) s = std::abs(s) + 0.01;
  const Values load = Random(3 * e), logsumexp = Random(n);
  const Values choices = {0, 1, 2, 3, 0, 2, 0, 1, 0, 3, 3, 0};
  const TokenRows rows = {.first = 1, .tokens = 3};
  double balance = 0, z = 0, entropy = 0;
  for (int64_t row = 0; row < n; ++row) {
    const Values s(scores.begin() + row * e, scores.begin() + (row + 1) * e);
    for (int64_t i = 0; i < e; ++i) {
      const double p = s[i] / SumOf(s);
      balance += 0.5 * load[rows.Of(row) * e + i] * p;
      entropy -= p * std::log(p);
    }
    z += logsumexp[row] * logsumexp[row];
  }
  const TestTensor tscores(device(), {n, e}, scores);
  const TestTensor tload(device(), {3, e}, load);
  const TestTensor tlogsumexp(device(), {n}, logsumexp);
  const TestTensor tchoices(device(), {n, k}, choices, DType::kI32);
  const Sums sums(device(), e);
  for (const double times : {1, 2}) {  // sums are added to
    RouterLoss(device(), {.scores = tscores,
                          .load = tload,
                          .load_scale = 0.5,
                          .rows = rows,
                          .logsumexp = tlogsumexp,
                          .choices = tchoices,
                          .balance = sums.balance,
                          .z = sums.z,
                          .entropy = sums.entropy,
                          .rows_counted = sums.rows,
                          .tokens = sums.tokens});
    EXPECT_NEAR(sums.balance.Read()[0], times * balance, 1e-5);
    EXPECT_NEAR(sums.z.Read()[0], times * z, 1e-5);
    EXPECT_NEAR(sums.entropy.Read()[0], times * entropy, 1e-5);
    EXPECT_EQ(sums.rows.Read()[0], times * n);
    EXPECT_EQ(sums.tokens.Read(),
              Values({5 * times, 2 * times, 2 * times, 3 * times}));
  }
}

// Half of the difference of a loss at an element moved up and down, over the
// move; the ops sum in f64 what scores of f32 make.
double Slope(TestTensor& x, Values values, size_t i,
             const std::function<double()>& loss) {
  constexpr double kMove = 1.0 / 256;
  const double at = values[i];
  double difference = 0;
  for (const double sign : {1.0, -1.0}) {
    values[i] = at + sign * kMove;
    x.Write(values);
    difference += sign * loss();
  }
  values[i] = at;
  x.Write(values);
  return difference / (2 * kMove);
}

TEST_P(RouterLossTest, BackwardAgreesWithFiniteDifferences) {
  constexpr int64_t n = 6, e = 4;
  constexpr double kBalance = 0.7, kZ = 0.3;
  Values scores = Random(n * e);
  for (double& s : scores) s = std::abs(s) + 0.5;
  const Values logsumexp = Random(n);
  TestTensor tscores(device(), {n, e}, scores);
  const TestTensor tload(device(), {3, e}, Random(3 * e));
  TestTensor tlogsumexp(device(), {n}, logsumexp);
  const TestTensor choices(device(), {n, 1}, Values(n, 0.0), DType::kI32);
  const TokenRows rows = {.first = 1, .tokens = 3};
  const auto loss = [&] {
    const Sums sums(device(), e);
    RouterLoss(device(), {.scores = tscores,
                          .load = tload,
                          .load_scale = 0.5,
                          .rows = rows,
                          .logsumexp = tlogsumexp,
                          .choices = choices,
                          .balance = sums.balance,
                          .z = sums.z,
                          .entropy = sums.entropy,
                          .rows_counted = sums.rows,
                          .tokens = sums.tokens});
    return kBalance * sums.balance.Read()[0] + kZ * sums.z.Read()[0];
  };
  const TestTensor d_scores(device(), DType::kF32, {n, e});
  const TestTensor d_logsumexp(device(), DType::kF32, {n});
  RouterLossBackward(device(), {.scores = tscores,
                                .load = tload,
                                .load_scale = 0.5,
                                .rows = rows,
                                .logsumexp = tlogsumexp,
                                .balance_scale = kBalance,
                                .z_scale = kZ,
                                .d_scores = d_scores,
                                .d_logsumexp = d_logsumexp});
  const Values of_scores = d_scores.Read();
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(of_scores[i], Slope(tscores, scores, i, loss), 1e-4) << i;
  }
  const Values of_logsumexp = d_logsumexp.Read();
  for (size_t i = 0; i < logsumexp.size(); ++i) {
    EXPECT_NEAR(of_logsumexp[i], Slope(tlogsumexp, logsumexp, i, loss), 1e-4)
        << i;
  }
}

// A router with sigmoid scores cannot lower its balance by making all of them
// small: p adds up to 1.
TEST_P(RouterLossTest, SmallScoresBuyNoBalance) {
  constexpr int64_t n = 5, e = 8;
  Values scores = Random(n * e);
  for (double& s : scores) s = 1e-6 * (std::abs(s) + 0.1);
  const TestTensor tscores(device(), {n, e}, scores);
  const TestTensor load(device(), {1, e}, Values(e, 1.0));
  const TestTensor choices(device(), {n, 1}, Values(n, 0.0), DType::kI32);
  const Sums sums(device(), e);
  RouterLoss(device(), {.scores = tscores,
                        .load = load,
                        .choices = choices,
                        .balance = sums.balance,
                        .entropy = sums.entropy,
                        .rows_counted = sums.rows,
                        .tokens = sums.tokens});
  EXPECT_NEAR(sums.balance.Read()[0], n, 1e-5);
}

// First choices find places before any second one, in each sequence by itself.
TEST_P(RouterLossTest, CapacityGivesPlacesInThePapersOrder) {
  constexpr int64_t n = 8, k = 2;
  // The first sequence's tokens choose (0, 1), (1, 0), (0, 2), (2, 0).
  const Values choices = {0, 1, 1, 0, 0, 2, 2, 0, 0, 1, 0, 1, 0, 1, 0, 1};
  Values gates(n * k);
  std::iota(gates.begin(), gates.end(), 1.0);
  const TestTensor tchoices(device(), {n, k}, choices, DType::kI32);
  const TestTensor tgates(device(), {n, k}, gates);
  const TestTensor kept(device(), DType::kF32, {n, k});
  const TestTensor dropped(device(), {1}, {0}, DType::kF64);
  Capacity(device(), {.choices = tchoices,
                      .gates = tgates,
                      .rows = {.tokens = 4},
                      .experts = 3,
                      .places = 2,
                      .kept = kept,
                      .dropped = dropped});
  // Expert 0 of the first: tokens 0 and 2 by first choices; both second ones
  // find it full, although token 1 comes before token 2.
  EXPECT_EQ(kept.Read(),
            Values({1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11, 12, 0, 0, 0, 0}));
  EXPECT_EQ(dropped.Read()[0], 6);
  const TestTensor d_kept(device(), {n, k}, Values(n * k, 3.0));
  CapacityBackward(device(),
                   {.kept = kept, .d_kept = d_kept, .d_gates = d_kept});
  EXPECT_EQ(d_kept.Read(),
            Values({3, 3, 3, 0, 3, 3, 3, 0, 3, 3, 3, 3, 0, 0, 0, 0}));
}

// Of two sequences of six tokens, three ranks have four tokens each: the second
// one has the end of the first sequence and the beginning of the second.
TEST_P(RouterLossTest, CapacityOfSomeTokensIsThatOfTheSequence) {
  constexpr int64_t n = 12, k = 2, experts = 4, sequences = 2, ranks = 3;
  constexpr int64_t tokens = n / sequences, of_rank = n / ranks;
  Values choices(n * k);
  for (int64_t token = 0; token < n; ++token) {
    choices[token * k] = token * token % 3;
    choices[token * k + 1] = (token * token % 3 + 1 + token % 2) % experts;
  }
  Values gates(n * k);
  std::iota(gates.begin(), gates.end(), 1.0);
  const auto of_rows = [&](const Values& all, int64_t rank) {
    return Values(all.begin() + rank * of_rank * k,
                  all.begin() + (rank + 1) * of_rank * k);
  };
  const TestTensor whole(device(), DType::kF32, {n, k});
  const TestTensor dropped(device(), {1}, {0}, DType::kF64);
  Capacity(device(),
           {.choices = TestTensor(device(), {n, k}, choices, DType::kI32),
            .gates = TestTensor(device(), {n, k}, gates),
            .rows = {.tokens = tokens},
            .experts = experts,
            .places = 2,
            .kept = whole,
            .dropped = dropped});
  EXPECT_GT(dropped.Read()[0], 2);
  Values counted;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const TestTensor counts(device(), DType::kF32, {sequences * k, experts});
    RouteLoad(device(), {.choices = TestTensor(device(), {of_rank, k},
                                               of_rows(choices, rank),
                                               DType::kI32),
                         .rows = {.first = rank * of_rank, .tokens = tokens},
                         .load = counts,
                         .by_choice = true});
    const Values own = counts.Read();
    counted.insert(counted.end(), own.begin(), own.end());
  }
  const TestTensor counts(device(), {ranks, sequences * k, experts}, counted);
  const TestTensor dropped_by_ranks(device(), {1}, {0}, DType::kF64);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const TestTensor kept(device(), DType::kF32, {of_rank, k});
    Capacity(device(), {.choices = TestTensor(device(), {of_rank, k},
                                              of_rows(choices, rank),
                                              DType::kI32),
                        .gates = TestTensor(device(), {of_rank, k},
                                            of_rows(gates, rank)),
                        .rows = {.first = rank * of_rank, .tokens = tokens},
                        .experts = experts,
                        .places = 2,
                        .counts = counts,
                        .rank = rank,
                        .kept = kept,
                        .dropped = dropped_by_ranks});
    EXPECT_EQ(kept.Read(), of_rows(whole.Read(), rank)) << "rank " << rank;
  }
  EXPECT_EQ(dropped_by_ranks.Read(), dropped.Read());
}

TEST_P(RouterLossTest, StepOfALoad) {
  const TestTensor weights(device(), {4}, {0.5, 0.5, 0.5, 0.5});
  const TestTensor load(device(), {4}, {1, 8, 4, 3});
  const TestTensor rounded(device(), DType::kBF16, {4});
  LoadStep(device(), {.weights = weights,
                      .load = load,
                      .parameters = rounded,
                      .mean = 4,
                      .bias_rate = 0.25});
  EXPECT_EQ(weights.Read(), Values({0.75, 0.25, 0.5, 0.75}));
  EXPECT_EQ(rounded.Read(), weights.Read());
  LoadStep(device(),
           {.weights = weights, .load = load, .mean = 4, .zero_load = true});
  EXPECT_EQ(weights.Read(), Values({0.25, 2, 1, 0.75}));
  EXPECT_EQ(load.Read(), Values(4, 0.0));
}

TROUPE_ON_EACH_DEVICE(RouterLossTest);

}  // namespace
}  // namespace troupe
