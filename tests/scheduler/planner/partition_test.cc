#include "scheduler/planner/partition.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

std::vector<Unit> UnitsOf(const std::vector<double>& seconds) {
  std::vector<Unit> units;
  for (const double time : seconds) {
    units.emplace_back().mutable_forward()->set_wait_seconds(time);
  }
  return units;
}

ParallelismSpec Given(const std::vector<int>& stages) {
  ParallelismSpec parallelism;
  parallelism.set_pipeline(static_cast<int>(stages.size()));
  parallelism.set_virtual_stages(1);
  for (const int units : stages) parallelism.add_stages(units);
  return parallelism;
}

// Stages of one rank each.
StageLayout OneEach(int stages) {
  StageLayout layout;
  for (int s = 0; s < stages; ++s) layout.holders.push_back({s});
  return layout;
}

std::vector<int> Counts(const std::vector<Unit>& units,
                        const StageLayout& layout,
                        const ParallelismSpec& parallelism = {}) {
  std::vector<int> counts;
  int next = 0;
  const auto partition = PartitionUnits(units, layout, parallelism);
  EXPECT_TRUE(partition.ok()) << partition.status();
  for (const auto& stage : *partition) {
    EXPECT_EQ(stage.front(), next);
    next = stage.back() + 1;
    counts.push_back(static_cast<int>(stage.size()));
  }
  EXPECT_EQ(next, static_cast<int>(units.size()));
  return counts;
}

std::vector<int> Counts(const std::vector<Unit>& units, int stages,
                        const ParallelismSpec& parallelism = {}) {
  return Counts(units, OneEach(stages), parallelism);
}

TEST(Partition, BalancesByCost) {
  EXPECT_EQ(Counts(UnitsOf({1, 1, 1, 1}), 2), (std::vector<int>{2, 2}));
  EXPECT_EQ(Counts(UnitsOf({0.01, 1, 1, 1, 1, 3}), 3),
            (std::vector<int>{3, 2, 1}));
  EXPECT_EQ(Counts(UnitsOf({5, 1, 1, 1}), 2), (std::vector<int>{1, 3}));
}

// The costliest stage is the same; the others are as even as can be.
TEST(Partition, BalancesWhatIsLeft) {
  EXPECT_EQ(Counts(UnitsOf({9, 1, 1, 1, 1}), 3), (std::vector<int>{1, 2, 2}));
}

// A V: the first and the last stage are on rank 0, and the units at both ends
// cost next to nothing.
TEST(Partition, RanksOfSeveralStagesAreEven) {
  const std::vector<Unit> units = UnitsOf({0.01, 1, 1, 1, 1, 1, 1, 0.02});
  EXPECT_EQ(
      Counts(units, {.holders = {{0}, {1}, {1}, {0}}, .micro_batches = 4}),
      (std::vector<int>{3, 1, 2, 2}));
  // Interleaved, ranks are even as it is.
  EXPECT_EQ(
      Counts(units, {.holders = {{0}, {1}, {0}, {1}}, .micro_batches = 4}),
      (std::vector<int>{2, 2, 2, 2}));
  // As they are where two ranks share every stage.
  EXPECT_EQ(Counts(units, {.holders = {{0, 1}, {0, 1}}, .micro_batches = 4}),
            (std::vector<int>{4, 4}));
}

// Against all cuts.
TEST(Partition, NoCutIsBetter) {
  const std::vector<double> seconds = {3, 1, 4, 1, 5, 9, 2, 6};
  const auto most = [&](const std::vector<int>& counts) {
    double worst = 0;
    size_t next = 0;
    for (const int count : counts) {
      double sum = 0;
      for (int i = 0; i < count; ++i) sum += seconds[next++];
      worst = std::max(worst, sum);
    }
    return worst;
  };
  double best = 1e9;
  for (int a = 1; a <= 6; ++a) {
    for (int b = 1; a + b <= 7; ++b) {
      best = std::min(best, most({a, b, 8 - a - b}));
    }
  }
  EXPECT_EQ(most(Counts(UnitsOf(seconds), 3)), best);
}

// Places of random speeds, two kinds of device at one of them, and memory for
// some of the units only: against all cuts into three.
TEST(Partition, NoCutIsBetterWhereDevicesDiffer) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int units = 3 + static_cast<int>(random() % 8);
    StageLayout layout = OneEach(3);
    for (int place = 0; place < 3; ++place) {
      std::vector<EqualRanks>& ranks = layout.seconds.emplace_back();
      for (int kind = 0; kind < (place == 1 ? 2 : 1); ++kind) {
        EqualRanks& of_kind = ranks.emplace_back();
        for (int u = 0; u < units; ++u) {
          of_kind.seconds.push_back(1 + static_cast<double>(random() % 9));
        }
      }
    }
    if (round % 2 == 1) {
      StageMemory& memory = layout.memory.emplace();
      memory.in_flight = {3, 2, 1};
      for (int place = 0; place < 3; ++place) {
        memory.room.push_back(20 + static_cast<int64_t>(random() % 60));
      }
      for (int u = 0; u < units; ++u) {
        memory.resident.push_back(static_cast<int64_t>(random() % 10));
        memory.kept.push_back(static_cast<int64_t>(random() % 4));
      }
    }
    // What is lacking, and the costliest stage.
    const auto cost = [&](const std::vector<int>& counts) {
      std::pair<int64_t, double> all = {0, 0};
      int begin = 0;
      for (int s = 0; s < 3; ++s) {
        int64_t lack = 0;
        for (const EqualRanks& ranks : layout.seconds[s]) {
          double sum = 0;
          for (int u = begin; u < begin + counts[s]; ++u) {
            sum += ranks.seconds[u];
          }
          all.second = std::max(all.second, sum);
        }
        if (layout.memory.has_value()) {
          lack = -layout.memory->room[s];
          for (int u = begin; u < begin + counts[s]; ++u) {
            lack += layout.memory->resident[u] +
                    layout.memory->in_flight[s] * layout.memory->kept[u];
          }
        }
        all.first += std::max<int64_t>(lack, 0);
        begin += counts[s];
      }
      return all;
    };
    auto best = cost({1, 1, units - 2});
    for (int a = 1; a <= units - 2; ++a) {
      for (int b = 1; a + b < units; ++b) {
        best = std::min(best, cost({a, b, units - a - b}));
      }
    }
    EXPECT_EQ(cost(Counts(std::vector<Unit>(units), layout)), best) << round;
  }
}

// A fast place has more of both of its stages.
TEST(Partition, FastRanksOfSeveralStagesHaveMore) {
  const std::vector<Unit> units(12);
  const auto seconds = [](double of_unit) {
    return std::vector<EqualRanks>{
        {.first = 0, .seconds = std::vector<double>(12, of_unit)}};
  };
  EXPECT_EQ(Counts(units, {.holders = {{0}, {1}, {1}, {0}},
                           .micro_batches = 8,
                           .seconds = {seconds(1), seconds(3)}}),
            (std::vector<int>{4, 2, 1, 5}));
  EXPECT_EQ(Counts(units, {.holders = {{0}, {1}, {0}, {1}},
                           .micro_batches = 8,
                           .seconds = {seconds(1), seconds(3)}}),
            (std::vector<int>{4, 2, 5, 1}));
}

TEST(Partition, TakesWhatIsGiven) {
  EXPECT_EQ(Counts(UnitsOf({1, 1, 1, 1, 1}), 2, Given({1, 4})),
            (std::vector<int>{1, 4}));
}

TEST(Partition, RefusesWhatDoesNotFit) {
  const auto message = [](int units, const ParallelismSpec& parallelism,
                          int stages) {
    return std::string(PartitionUnits(UnitsOf(std::vector<double>(units, 1)),
                                      OneEach(stages), parallelism)
                           .status()
                           .message());
  };
  EXPECT_THAT(message(5, Given({3, 3}), 2),
              StartsWith("parallelism.stages: [3, 3] are 6 units, the model "
                         "has 5"));
  EXPECT_THAT(message(5, Given({1, 2, 2}), 2),
              StartsWith("parallelism.stages: [1, 2, 2] has 3 stages; "));
  EXPECT_THAT(message(5, Given({0, 5}), 2),
              StartsWith("parallelism.stages: 0"));
  ParallelismSpec many;
  many.set_pipeline(6);
  many.set_virtual_stages(1);
  EXPECT_THAT(message(5, many, 6),
              StartsWith("parallelism.pipeline: 6 with "
                         "parallelism.virtual_stages 1 makes 6 stages, and "
                         "the model has 5 units"));
}

}  // namespace
}  // namespace troupe
