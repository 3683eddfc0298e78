// Plans that say the loss of each sequence, broken in the ways in which some
// would be lost, or lie in the place of others.
#include "proto/plan/sequence_losses.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "tests/proto/plan/planted.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

JobSpec LossesJob() {
  const JobSpec trained = ExampleJob({});
  JobSpec job;
  job.set_name("losses");
  job.set_evaluate(true);
  job.set_sequence_losses(true);
  *job.mutable_model() = trained.model();
  job.mutable_data()->set_validation("/v.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(2);
  training.set_global_batch_size(8);
  training.set_micro_batch_size(2);
  job.mutable_parallelism()->set_data(2);
  return job;
}

Op& LossOp(Plan& plan) {
  for (UnitTable& table : *plan.mutable_tables()) {
    for (Op& op : *table.mutable_ops()) {
      if (op.kind() == Op::CROSS_ENTROPY) return op;
    }
  }
  ADD_FAILURE() << "no loss";
  return *plan.mutable_tables(0)->mutable_ops(0);
}

const PlantedFault kFaults[] = {
    {"a loss without places", [](Plan& p) { LossOp(p).clear_step_sequences(); },
     "CROSS_ENTROPY has the losses of 0 sequences of a step by themselves, not "
     "of 8"},
    {"an op that has no loss",
     [](Plan& p) { NthOp(p, Op::ATTENTION, 0).set_step_sequences(8); },
     "ATTENTION has the losses of 8 sequences of a step by themselves, not of "
     "0"},
    {"a job that does not ask for them",
     [](Plan& p) { p.mutable_job()->set_sequence_losses(false); },
     "CROSS_ENTROPY has the losses of 8"},
    {"more micro-batches than places",
     [](Plan& p) { p.mutable_derived()->set_validation_micro_batches(3); },
     "micro-batches have places for 12 sequences, and the losses of a step are "
     "of 8"},
};

TEST(SequenceLosses, NamesTheFault) {
  for (const PlantedFault& fault : kFaults) {
    Plan plan = ExamplePlan(LossesJob());
    ASSERT_EQ(CheckSequenceLosses(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckSequenceLosses(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

TEST(SequenceLosses, PlansPassAllChecks) {
  EXPECT_EQ(StepSequences(ExamplePlan(LossesJob()).job()), 8);
  EXPECT_EQ(CheckPrograms(ExamplePlan(LossesJob())), absl::OkStatus());
  JobSpec job = LossesJob();
  job.set_sequence_losses(false);
  const Plan plan = ExamplePlan(job);
  EXPECT_EQ(StepSequences(plan.job()), 0);
  EXPECT_EQ(CheckPrograms(plan), absl::OkStatus());
}

}  // namespace
}  // namespace troupe
