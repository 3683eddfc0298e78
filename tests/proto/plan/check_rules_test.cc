#include "proto/plan/check_rules.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_work.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Of each block, biases and norms have half the learning rate and no decay, and
// one matrix is trained by Lion.
JobSpec Job() {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  OptimizerGroup& small = *job.mutable_optimizer()->add_groups();
  small.add_match("*bias");
  small.add_match("*.ln_?.*");
  small.set_lr_scale(0.5);
  small.set_weight_decay(0);
  OptimizerGroup& lion = *job.mutable_optimizer()->add_groups();
  lion.add_match("*.mlp.c_fc.weight");
  lion.set_name("lion");
  return job;
}

TEST(CheckRules, AcceptsACompiledPlan) {
  EXPECT_TRUE(CheckRules(ExamplePlan(Job())).ok());
  EXPECT_TRUE(CheckRules(ExamplePlan(ExampleJob({}))).ok());
}

constexpr int kBlock = 1;

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};
const Fault kFaults[] = {
    {"another rule",
     [](Plan& p) { p.mutable_units(kBlock)->mutable_parts(1)->set_rule(0); },
     "has rule 1, but its part 1 has 0"},
    {"a rule that there is not",
     [](Plan& p) { p.mutable_units(kBlock)->mutable_parts(1)->set_rule(3); },
     "unit 1: part 1 has rule 3, which no group is"},
    {"groups that the parts know nothing of",
     [](Plan& p) { p.mutable_job()->mutable_optimizer()->clear_groups(); },
     "which no group is"},
    {"other patterns",
     [](Plan& p) {
       p.mutable_job()->mutable_optimizer()->mutable_groups(0)->add_match("*");
     },
     "has rule 1, but its part 0 has 0"},
    {"fewer states first",
     [](Plan& p) {
       p.mutable_units(kBlock)->mutable_parts()->SwapElements(0, 2);
     },
     "unit 1: part 1 has 2 optimizer states, and lies behind one with 1"},
    {"a norm that decays",
     [](Plan& p) {
       for (Parameter& parameter :
            *p.mutable_units(kBlock)->mutable_parameters()) {
         parameter.set_weight_decay(true);
       }
     },
     " decays, and its group says otherwise"},
};

TEST(CheckRules, RefusesPlantedFaults) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    Plan plan = ExamplePlan(Job());
    ASSERT_EQ(plan.units(kBlock).parts_size(), 3);
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckRules(plan).message()),
                HasSubstr(fault.message));
  }
}

// Parts that differ in their rule alone are summed at once: each of them is
// summed once.
TEST(CheckRules, PartsAreSummedOnce) {
  JobSpec job = Job();
  job.mutable_parallelism()->set_bucket_megabytes(1e-6);
  for (const int count : {1, 2, 3}) {
    Plan plan = ExamplePlan(job);
    Program& train = ProgramOf(plan, 0, Program::TRAIN);
    train.mutable_instructions(IndexOf(train, "R u1 q0-2 g0"))
        ->set_part_count(count);
    const absl::Status status = CheckWork(plan);
    EXPECT_EQ(status.ok(), count == 3) << status;
    if (count < 3) {
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("REDUCE_GRADS of unit 1 is missing"));
    }
  }
}

// A matrix that Muon trains must not be moved over the edge of a slice.
TEST(CheckRules, RefusesMatricesInSeveralSlices) {
  JobSpec job = ExampleJob({.data = 4, .micro_batches = 2});
  OptimizerGroup& muon = *job.mutable_optimizer()->add_groups();
  muon.add_match("*.mlp.*.weight");
  muon.set_name("muon");
  job.mutable_parallelism()->set_zero(1);
  Plan plan = ExamplePlan(job);
  ASSERT_TRUE(CheckRules(plan).ok()) << CheckRules(plan);
  Unit& unit = *plan.mutable_units(kBlock);
  for (Parameter& parameter : *unit.mutable_parameters()) {
    if (parameter.name() != "transformer.h.0.mlp.c_fc.weight") continue;
    parameter.set_offset(parameter.offset() + 32);
  }
  EXPECT_THAT(std::string(CheckRules(plan).message()),
              HasSubstr("whose rule updates it as a whole, lies in several"));
}

}  // namespace
}  // namespace troupe
