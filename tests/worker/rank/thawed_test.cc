#include "worker/rank/thawed.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

JobSpec Freezing(const std::string& pattern) {
  JobSpec job;
  job.mutable_optimizer()->set_name("adamw");
  for (const double beta : {0.9, 0.95}) {
    job.mutable_optimizer()->add_betas(beta);
  }
  if (!pattern.empty()) job.mutable_training()->add_freeze(pattern);
  return job;
}

// A plan that trains two tensors and has a third frozen.
Plan SomePlan() {
  Plan plan;
  *plan.mutable_job() = Freezing("*.frozen");
  Unit& unit = *plan.add_units();
  for (const char* const name : {"a.weight", "a.bias", "a.frozen"}) {
    unit.add_parameters()->set_name(name);
  }
  unit.mutable_parameters(2)->set_frozen(true);
  return plan;
}

TEST(Thawed, StatesOfWhatWasFrozenMayBeMissing) {
  const JobSpec saved = Freezing("*bias");
  EXPECT_TRUE(StateWasFrozen(saved, "optimizer.exp_avg.a.bias"));
  EXPECT_TRUE(StateWasFrozen(saved, "optimizer.exp_avg_sq.a.bias"));
  EXPECT_FALSE(StateWasFrozen(saved, "optimizer.exp_avg.a.weight"));
  // Of another optimizer than the job's.
  EXPECT_FALSE(StateWasFrozen(saved, "optimizer.momentum.a.bias"));
  EXPECT_FALSE(StateWasFrozen(Freezing(""), "optimizer.exp_avg.a.bias"));
}

TEST(Thawed, SaysOfHowManyTensorsStatesBegin) {
  EXPECT_EQ(StatesThatBegin(Freezing("*bias"), SomePlan()),
            "the optimizer's states of 1 tensor that was frozen there begin at "
            "zero, and their first update is 0.45 times the learning rate");
  EXPECT_EQ(StatesThatBegin(Freezing("*"), SomePlan()),
            "the optimizer's states of 2 tensors that were frozen there begin "
            "at zero, and their first update is 0.45 times the learning rate");
  Plan slow = SomePlan();
  slow.mutable_job()->mutable_optimizer()->set_betas(1, 0.999);
  EXPECT_EQ(StatesThatBegin(Freezing("*bias"), slow),
            "the optimizer's states of 1 tensor that was frozen there begin at "
            "zero, and their first update is 3.2 times the learning rate, the "
            "next ones more: consider a lower optimizer.lr, or begin anew with "
            "model.hf");
  EXPECT_EQ(StatesThatBegin(Freezing("*.frozen"), SomePlan()), "");
  EXPECT_EQ(StatesThatBegin(Freezing(""), SomePlan()), "");
  Plan plain = SomePlan();
  plain.mutable_job()->mutable_optimizer()->set_name("sgd");
  EXPECT_EQ(StatesThatBegin(Freezing("*"), plain), "") << "it has no states";
}

}  // namespace
}  // namespace troupe
