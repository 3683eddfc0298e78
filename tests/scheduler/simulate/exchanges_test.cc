#include "scheduler/simulate/exchanges.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/ways.h"
#include "scheduler/simulate/cost_model.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

constexpr double kWithin = 4e9;  // bytes a second
constexpr double kBetween = 1e8;
constexpr double kAdapter = 1.5e8;

// Two hosts of two, which share an adapter.
std::vector<WorkerDescription> TwoByTwo() {
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  for (int r = 0; r < 4; ++r) {
    workers[r].set_host(r < 2 ? "a" : "b");
    LinkRate& within =
        *workers[r].mutable_calibration()->mutable_shared_memory();
    within.set_latency_us(1);
    within.set_bytes_per_second(kWithin);
    LinkRate& between = *workers[r].mutable_network()->mutable_rate();
    between.set_latency_us(20);
    between.set_bytes_per_second(kBetween);
    Nic& nic = *workers[r].add_nics();
    nic.set_name("eth0");
    nic.mutable_link()->mutable_rate()->set_bytes_per_second(kAdapter);
  }
  return workers;
}

// The example's plan with all of the first group's all-reduces over levels.
Plan PlanOverLevels() {
  Plan plan = ExamplePlan(ExampleJob({.data = 4}));
  Group& group = *plan.mutable_groups(0);
  group.clear_carriers();
  Group::Carrier& carrier = *group.add_carriers();
  carrier.set_backend("gloo");
  int stride = 1;
  for (const char* backend : {"shared_memory", "gloo"}) {
    Group::Level& level = *group.add_levels();
    level.set_name(stride == 1 ? "within hosts" : "across hosts");
    level.set_size(2);
    level.set_stride(stride);
    stride *= 2;
    carrier.add_levels()->add_backends(backend);
  }
  Group::Way& way = *group.add_ways();
  way.set_collective(ALL_REDUCE);
  way.set_row("two_level");
  for (const auto& [collective, level] :
       {std::pair(REDUCE_SCATTER, 0), {ALL_REDUCE, 1}, {ALL_GATHER, 0}}) {
    Group::Step& step = *way.add_steps();
    step.set_collective(collective);
    step.set_level(level);
  }
  EXPECT_TRUE(CheckWays(group, 4).ok());
  return plan;
}

Operation AllReduceOf(int64_t bytes) {
  return {.size = {.bytes = bytes, .ranks = 4, .collective = ALL_REDUCE}};
}

// By hand: half of it within the host, twice; a quarter of it between hosts,
// twice, by both ranks of a host over one adapter.
TEST(Exchanges, StepsTakeWhatTheirLinksAllow) {
  const Plan plan = PlanOverLevels();
  const CostModel costs(plan, TwoByTwo());
  constexpr int64_t kBytes = 4 << 20;
  const std::vector<double> seconds =
      costs.StepSeconds(0, plan.groups(0).ways(0), AllReduceOf(kBytes));
  ASSERT_EQ(seconds.size(), 3u);
  EXPECT_NEAR(seconds[0], 1e-6 + kBytes / 2 / kWithin, 1e-9);
  EXPECT_NEAR(seconds[2], seconds[0], 1e-9);
  EXPECT_NEAR(seconds[1], 2 * 20e-6 + 2 * (kBytes / 2) / kAdapter, 1e-9);
  EXPECT_NEAR(costs.WaySeconds(0, plan.groups(0).ways(0), AllReduceOf(kBytes)),
              seconds[0] + seconds[1] + seconds[2], 1e-12);
}

// Of two groups that lie on hosts alike, the second has the slow network.
TEST(Exchanges, TheSlowestOfTheGroupsCounts) {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_parallelism()->set_tensor(2);
  Plan plan = ExamplePlan(job);
  const auto group = std::find_if(
      plan.groups().begin(), plan.groups().end(),
      [](const Group& candidate) { return candidate.name() == "data"; });
  ASSERT_NE(group, plan.groups().end());
  const auto index = static_cast<int>(group - plan.groups().begin());
  plan.mutable_groups(index)->clear_carriers();
  plan.mutable_groups(index)->add_carriers()->set_backend("gloo");
  // Rank 0 and 2, 1 and 3.
  std::vector<WorkerDescription> workers = TwoByTwo();
  const char* hosts[] = {"a", "b", "c", "d"};
  for (int r = 0; r < 4; ++r) workers[r].set_host(hosts[r]);
  const Operation all_reduce = {
      .size = {.bytes = 4 << 20, .ranks = 2, .collective = ALL_REDUCE}};
  const double even =
      CostModel(plan, workers).WaySeconds(index, {}, all_reduce);
  for (const int r : {1, 3}) {
    workers[r].mutable_network()->mutable_rate()->set_bytes_per_second(
        kBetween / 4);
  }
  const double uneven =
      CostModel(plan, workers).WaySeconds(index, {}, all_reduce);
  EXPECT_GT(uneven, 3 * even);
  // The first group is on one host, the second is not.
  for (const int r : {0, 2}) workers[r].set_host("a");
  EXPECT_TRUE(CostModel(plan, workers).SpansHosts(index));
  const auto predicted = PredictExchanges(plan, CostModel(plan, workers));
  EXPECT_TRUE(std::any_of(predicted.begin(), predicted.end(),
                          [](const ExchangePrediction& exchange) {
                            return exchange.group() == "data";
                          }));
}

// The slower level's, while the other is behind by one piece; and each piece
// has the latencies once more.
TEST(Exchanges, PiecesTakeWhatTheSlowestLevelTakes) {
  Plan plan = PlanOverLevels();
  Group::Way& way = *plan.mutable_groups(0)->mutable_ways(0);
  constexpr int64_t kBytes = 4 << 20;
  const CostModel costs(plan, TwoByTwo());
  const double in_turn = costs.WaySeconds(0, way, AllReduceOf(kBytes));
  constexpr int kPieces = 8;
  way.set_pieces(kPieces);
  ASSERT_TRUE(CheckWays(plan.groups(0), 4).ok());
  const double within = 2 * (kPieces * 1e-6 + kBytes / 2 / kWithin);
  const double across = 2 * (kPieces * 20e-6 + (kBytes / 2) / kAdapter);
  EXPECT_NEAR(costs.WaySeconds(0, way, AllReduceOf(kBytes)),
              across + within / kPieces, 1e-9);
  EXPECT_LT(across + within / kPieces, in_turn);
  for (int rank = 0; rank < 4; ++rank) {
    const Cost cost = costs.GroupCost(rank, 0, AllReduceOf(kBytes));
    EXPECT_DOUBLE_EQ(cost.bytes[LOCAL_OUT], kBytes);
    EXPECT_DOUBLE_EQ(cost.bytes[NETWORK_OUT], kBytes / 2);
    for (const double full : cost.on_links) EXPECT_LE(full, cost.on_wire);
    EXPECT_LE(cost.on_wire, cost.communication);
  }
  // Where latency is all, pieces are dear.
  EXPECT_GT(costs.WaySeconds(0, way, AllReduceOf(64)), 8 * 40e-6);
}

// Two levels over one adapter take turns on it, in pieces or not.
TEST(Exchanges, PiecesDoNotMultiplyALink) {
  Plan plan = PlanOverLevels();
  std::vector<WorkerDescription> workers = TwoByTwo();
  for (int r = 0; r < 4; ++r) workers[r].set_host(r % 2 == 0 ? "a" : "b");
  // Ranks 0 and 1 are on unlike hosts, and so are 0 and 3: no level is local.
  workers[2].set_host("b");
  workers[3].set_host("a");
  Group& group = *plan.mutable_groups(0);
  for (auto& level : *group.mutable_carriers(0)->mutable_levels()) {
    level.set_backends(0, "gloo");
  }
  group.mutable_ways(0)->set_pieces(64);
  const CostModel costs(plan, workers);
  constexpr int64_t kBytes = 4 << 20;
  double sent = 0;  // by the ranks of a host
  for (const int rank : {0, 3}) {
    sent += costs.GroupCost(rank, 0, AllReduceOf(kBytes)).bytes[NETWORK_OUT];
  }
  EXPECT_GT(sent, 2 * kBytes);
  EXPECT_GE(costs.WaySeconds(0, group.ways(0), AllReduceOf(kBytes)),
            sent / kAdapter);
}

TEST(Exchanges, ARankPutsTheBytesOfEachLevelOnItsLinks) {
  const Plan plan = PlanOverLevels();
  const CostModel costs(plan, TwoByTwo());
  constexpr int64_t kBytes = 4 << 20;
  for (int rank = 0; rank < 4; ++rank) {
    const Cost cost = costs.GroupCost(rank, 0, AllReduceOf(kBytes));
    EXPECT_DOUBLE_EQ(cost.bytes[LOCAL_OUT], kBytes);
    EXPECT_DOUBLE_EQ(cost.bytes[LOCAL_IN], kBytes);
    EXPECT_DOUBLE_EQ(cost.bytes[NETWORK_OUT], kBytes / 2);
    EXPECT_DOUBLE_EQ(cost.bytes[NETWORK_IN], kBytes / 2);
  }
}

TEST(Exchanges, PredictsThoseOfTheStepThatCrossHosts) {
  const Plan plan = PlanOverLevels();
  const auto predicted = PredictExchanges(plan, CostModel(plan, TwoByTwo()));
  ASSERT_FALSE(predicted.empty());
  for (const ExchangePrediction& exchange : predicted) {
    EXPECT_EQ(exchange.row(), "two_level");
    ASSERT_EQ(exchange.levels_size(), 2);
    EXPECT_EQ(exchange.levels(0).bytes(), exchange.bytes());
    EXPECT_EQ(exchange.levels(1).bytes(), exchange.bytes() / 2);
    EXPECT_GT(exchange.flat_seconds(), 0);
  }
  EXPECT_TRUE(
      PredictExchanges(plan, CostModel(plan, ExampleWorkers(4))).empty())
      << "on one host";
}

}  // namespace
}  // namespace troupe
