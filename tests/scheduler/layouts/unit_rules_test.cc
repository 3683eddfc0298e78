// Units that are cut by rules of their own, and what stands between them then.
#include "scheduler/layouts/unit_rules.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "proto/plan/strategies.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/layouts/table_lines.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Width 16, 2 heads, 64 tokens, two blocks; micro-batches of 2 x 8 tokens.
UnitList Units() {
  JobSpec job = ExampleJob({});
  EXPECT_TRUE(ResolveModel(*job.mutable_model()).ok());
  auto units = ModelUnits(job.model(),
                          {.sequences = 2, .sequence_length = 8, .dtype = F32});
  EXPECT_TRUE(units.ok()) << units.status();
  return *std::move(units);
}

// Two ranks, which share some units by columns and the others by sequences.
UnitList SharedBy(const std::vector<std::string>& in_batch,
                  bool sequence = false) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(2);
  parallelism.set_sequence_parallel(sequence);
  StrategySpec& batch = *parallelism.add_strategies();
  batch.set_batch(2);
  for (const std::string& units : in_batch) batch.add_units(units);
  UnitList units = Units();
  const UnitRules rules = RulesByUnit(
      parallelism, StrategyOfUnits(parallelism, KindsOf(units.units), {}));
  EXPECT_TRUE(CheckCuts(rules, units).ok());
  const absl::Status cut = CutUnits(rules, units);
  EXPECT_TRUE(cut.ok()) << cut;
  return units;
}

TEST(UnitRules, TurnsAtTheEndsOfUnitsThatDisagree) {
  const UnitList blocks = SharedBy({"blocks"});
  const auto lines = [](const UnitList& units, int unit) {
    return Lines(units.tables[units.units[unit].table()]);
  };
  EXPECT_THAT(
      lines(blocks, 0),
      ElementsAre("EMBED [2, 8, 16] Partial on tensor",
                  "REDUCE_SCATTER / ALL_GATHER [1, 8, 16] Shard(0) on tensor"));
  EXPECT_THAT(lines(blocks, 1),
              Each(AllOf(HasSubstr("[1, 8, "), HasSubstr("Shard(0)"))));
  EXPECT_THAT(lines(blocks, 3).front(),
              "ALL_GATHER / SLICE [2, 8, 16] Replicate");
  EXPECT_EQ(blocks.units[1].table(), blocks.units[2].table());

  const UnitList ends = SharedBy({"embedding", "head"});
  EXPECT_THAT(lines(ends, 0),
              ElementsAre("EMBED [1, 8, 16] Shard(0) on tensor"));
  EXPECT_THAT(lines(ends, 1).front(),
              "ALL_GATHER / SLICE [2, 8, 16] Replicate");
  EXPECT_THAT(lines(ends, 1).back(), "ADD [2, 8, 16] Replicate");
  EXPECT_THAT(lines(ends, 2).front(), "NORM [2, 8, 16] Replicate");
  EXPECT_THAT(lines(ends, 2).back(),
              "SLICE / ALL_GATHER [1, 8, 16] Shard(0) on tensor");
  EXPECT_THAT(lines(ends, 3).front(), "NORM [1, 8, 16] Shard(0) on tensor");
}

// Two ranks' rows of two samples are those of a sample each.
TEST(UnitRules, TakesRowsForSamples) {
  const UnitList units = SharedBy({"blocks"}, /*sequence=*/true);
  const auto lines = [&units](int unit) {
    return Lines(units.tables[units.units[unit].table()]);
  };
  EXPECT_THAT(
      lines(0),
      ElementsAre("EMBED [2, 8, 16] Partial on tensor",
                  "REDUCE_SCATTER / ALL_GATHER [2, 4, 16] Shard(1) on tensor"));
  EXPECT_EQ(lines(1).front(), "- / - [1, 8, 16] Shard(0) on tensor");
  EXPECT_THAT(lines(2).front(), HasSubstr("NORM [1, 8, 16]"));
  EXPECT_EQ(lines(3).front(), "- / - [2, 4, 16] Shard(1) on tensor");
}

}  // namespace
}  // namespace troupe
