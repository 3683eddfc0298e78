// Plans whose units share the ranks of a stage in unlike ways, broken at what
// only they have: the ends of units that disagree, and which ranks sum what.
// Every fault is found, and named, from the plan alone.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_batch.h"
#include "proto/plan/check_layouts.h"
#include "proto/plan/check_parts.h"
#include "tests/proto/plan/planted.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kTrain = Program::TRAIN;

void Add(int stage, int batch, int tensor, JobSpec& job) {
  StrategySpec& strategy = *job.mutable_parallelism()->add_strategies();
  strategy.set_stage(stage);
  if (batch > 1) strategy.set_batch(batch);
  if (tensor > 1) strategy.set_tensor(tensor);
}

// Units 0 to 2 are shared by columns, 3 to 5 by sequences; ranks 0 and 1, 2 and
// 3 are along "tensor".
JobSpec StagesJob() {
  JobSpec job = ExampleJob({.micro_batches = 2, .blocks = 4});
  job.mutable_model()->set_tie_word_embeddings(false);
  job.mutable_parallelism()->set_pipeline(2);
  Add(0, 1, 2, job);
  Add(1, 2, 1, job);
  for (const int units : {3, 3}) job.mutable_parallelism()->add_stages(units);
  return job;
}

UnitTable& TableOfUnit(Plan& plan, int unit) {
  return *plan.mutable_tables(plan.units(unit).table());
}

// The last op of the first stage: what it makes of all sequences, a rank's of
// its own ones.
Op& SliceBehind(Plan& plan) {
  UnitTable& table = TableOfUnit(plan, 2);
  return *table.mutable_ops(table.ops_size() - 1);
}

TensorSpec& TensorAt(Plan& plan, int unit, TensorSpec::Home home) {
  for (TensorSpec& tensor : *TableOfUnit(plan, unit).mutable_tensors()) {
    if (tensor.home() == home) return tensor;
  }
  ADD_FAILURE() << "no such tensor";
  return *TableOfUnit(plan, unit).mutable_tensors(0);
}

Instruction& FirstOf(Plan& plan, int rank, Collective collective) {
  for (Instruction& instruction :
       *ProgramOf(plan, rank, kTrain).mutable_instructions()) {
    if (instruction.exchange().collective() == collective) return instruction;
  }
  ADD_FAILURE() << "no " << Collective_Name(collective);
  return *ProgramOf(plan, rank, kTrain).mutable_instructions(0);
}

TEST(CheckStrategies, NamesWhatIsWrong) {
  const PlantedFault faults[] = {
      {"a slice that is none",
       [](Plan& p) {
         SliceBehind(p).mutable_exchange()->set_forward(ALL_GATHER);
       },
       "which does not make SHARD(0) of REPLICATE"},
      {"gradients that stay slices",
       [](Plan& p) { SliceBehind(p).mutable_exchange()->set_backward(SLICE); },
       "does SLICE and SLICE in backward"},
      {"another collective",
       [](Plan& p) {
         FirstOf(p, 0, SLICE).mutable_exchange()->set_collective(ALL_GATHER);
       },
       "is ALL_GATHER of F32, where its unit needs SLICE of F32"},
      {"parameters of a batch's ranks that say to be pieces",
       [](Plan& p) { p.mutable_units(4)->mutable_parts(0)->clear_shares(); },
       "of which ranks have a piece each, but of it they have 2 neighbours the "
       "same, with summands of its gradient"},
      {"gradients of which each is said to have the sum",
       [](Plan& p) {
         p.mutable_units(4)->mutable_parts(0)->mutable_shares(0)->set_summed(
             false);
       },
       "with its gradient, too, but of it they have 2 neighbours the same, "
       "with summands"},
      {"summands that nobody sums",
       [](Plan& p) {
         for (Role& role : *p.mutable_roles()) {
           for (Placement& placement : *role.mutable_placements()) {
             if (placement.unit() == 4) {
               placement.mutable_parts(0)->clear_summed();
             }
           }
         }
       },
       "part 0 of unit 4 is on ranks 2, 3 but rank 2 sums its gradients over "
       "ranks 2"},
      {"a sum over ranks that have columns each",
       [](Plan& p) {
         const int part = p.units(1).parts_size() - 1;
         p.mutable_units(1)->mutable_parts(part)->add_shares()->set_axis(
             "tensor");
         Unit::Part& last = *p.mutable_units(1)->mutable_parts(part);
         last.mutable_shares(0)->set_copies(2);
         last.mutable_shares(0)->set_summed(true);
       },
       "but of it they have a piece each"},
  };
  ExpectProgramFaultsAreNamed(StagesJob(), faults);
}

// Faults that other checks would find first.
struct LayoutFault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};

TEST(CheckStrategies, ComparesWhatUnitsHandToOneAnother) {
  const LayoutFault faults[] = {
      {"the table of a unit whose next one does as it does",
       [](Plan& p) { p.mutable_units(2)->set_table(p.units(1).table()); },
       "unit 3 reads input as SHARD(0) along tensor, its gradient SHARD(0), "
       "but "
       "unit 2 makes it as whole"},
      {"targets of a rank's own sequences",
       [](Plan& p) {
         TensorSpec& targets = TensorAt(p, 5, TensorSpec::BATCH);
         const TensorSpec& input = TensorAt(p, 5, TensorSpec::INPUT);
         *targets.mutable_dims(0) = input.dims(0);
         *targets.mutable_layout() = input.layout();
       },
       "unit 5 reads targets of the batch as"},
  };
  const auto check = [](const Plan& plan) {
    const absl::Status layouts = CheckLayouts(plan);
    return layouts.ok() ? CheckBatch(plan) : layouts;
  };
  EXPECT_EQ(check(ExamplePlan(StagesJob())), absl::OkStatus());
  for (const LayoutFault& fault : faults) {
    Plan plan = ExamplePlan(StagesJob());
    fault.plant(plan);
    EXPECT_THAT(std::string(check(plan).message()), HasSubstr(fault.message))
        << fault.name;
  }
}

TEST(CheckStrategies, TakesRowsForSamplesOnlyWhereRanksDivideThem) {
  JobSpec job = StagesJob();
  job.mutable_parallelism()->mutable_strategies(0)->set_sequence_parallel(true);
  Plan plan = ExamplePlan(job);
  EXPECT_EQ(CheckLayouts(plan), absl::OkStatus());
  UnitTable& table = TableOfUnit(plan, 3);
  for (TensorSpec& tensor : *table.mutable_tensors()) {
    for (auto& cut :
         *tensor.mutable_dims(0)->mutable_sections(0)->mutable_cuts()) {
      cut.set_whole(3);
    }
  }
  EXPECT_THAT(std::string(CheckLayouts(plan).message()),
              HasSubstr("for samples, which 2 ranks do not have alike"));
}

// The head has the sum of what it adds to a tied table, of which the embedding
// has summands.
TEST(CheckStrategies, LooksAtWhatTiedUnitsAdd) {
  JobSpec job = ExampleJob({});
  job.mutable_parallelism()->set_batch(2);
  Plan plan = ExamplePlan(job);
  EXPECT_EQ(CheckParts(plan), absl::OkStatus());
  const int head = plan.units_size() - 1;
  for (TensorSpec& tensor : *TableOfUnit(plan, head).mutable_tensors()) {
    tensor.clear_gradient_layout();
  }
  EXPECT_THAT(std::string(CheckParts(plan).message()),
              HasSubstr("has a gradient of which ranks have summands, and unit "
                        "3 adds all to it"));
}

// What parts say of their types, tiers and replicas.
TEST(CheckStrategies, LooksAtWhatPartsSayOfTheirState) {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_training()->add_freeze("*.h.*.bias");
  job.mutable_training()->set_precision("bf16");
  job.mutable_memory()->set_optimizer("host");
  const Plan plan = ExamplePlan(job);
  ASSERT_EQ(CheckParts(plan), absl::OkStatus());
  const Unit::Part& part = plan.units(1).parts(0);
  EXPECT_EQ(part.dtype(), BF16);
  EXPECT_EQ(part.gradient_dtype(), F32);
  EXPECT_EQ(part.tiers().states(), HOST);
  const auto fault = [&plan](const auto& plant) {
    Plan faulty = plan;
    plant(*faulty.mutable_units(1));
    return std::string(CheckParts(faulty).message());
  };
  const char* const apart =
      "unit 1: part 1 has other types or tiers than part 0";
  EXPECT_THAT(fault([](Unit& unit) {
                unit.mutable_parts(1)->set_gradient_dtype(BF16);
              }),
              HasSubstr(apart));
  EXPECT_THAT(fault([](Unit& unit) {
                unit.mutable_parts(1)->mutable_tiers()->set_states(NVME);
              }),
              HasSubstr(apart));
  EXPECT_THAT(fault([](Unit& unit) {
                for (Unit::Part& of : *unit.mutable_parts()) of.set_dtype(F32);
              }),
              HasSubstr("unit 1: part 0 has type F32, but "));
  EXPECT_THAT(
      fault([](Unit& unit) { unit.mutable_parts(1)->clear_shares(); }),
      HasSubstr("unit 1: part 1 says that along data ranks have a piece each, "
                "but they have 2 neighbours the same, with summands"));
  EXPECT_THAT(fault([](Unit& unit) {
                unit.mutable_parts(0)->mutable_shares(0)->set_summed(false);
              }),
              HasSubstr("with its gradient, too, but they have 2 neighbours"));
}

}  // namespace
}  // namespace troupe
