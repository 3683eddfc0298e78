#include "proto/plan/check_passes.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kTrain = Program::TRAIN;

JobSpec DataJob() {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(5);
  return job;
}

JobSpec PipelineJob(const char* schedule) {
  JobSpec job = ExampleJob({.micro_batches = 4});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_pipeline_schedule(schedule);
  return job;
}

void Drop(Plan& plan, int rank, Program::Kind kind, const char* text) {
  Program& program = ProgramOf(plan, rank, kind);
  Remove(program, IndexOf(program, text));
}

void Copy(Plan& plan, int from, int to, const char* text) {
  const Program& program = ProgramOf(plan, from, kTrain);
  const Instruction copy = program.instructions(IndexOf(program, text));
  *ProgramOf(plan, to, kTrain).add_instructions() = copy;
}

Instruction& At(Plan& plan, int rank, const char* text) {
  Program& program = ProgramOf(plan, rank, kTrain);
  return *program.mutable_instructions(IndexOf(program, text));
}

struct Fault {
  const char* name;
  JobSpec job;
  void (*plant)(Plan& plan);
  const char* message;
};

TEST(CheckPasses, AcceptsCompiledPlans) {
  EXPECT_TRUE(CheckPasses(ExamplePlan(DataJob())).ok());
  for (const char* schedule : {"1f1b", "chimera", "pipedream"}) {
    EXPECT_TRUE(CheckPasses(ExamplePlan(PipelineJob(schedule))).ok())
        << schedule;
  }
}

TEST(CheckPasses, NamesTheFault) {
  const Fault faults[] = {
      {"lost forward", DataJob(),
       [](Plan& p) { Drop(p, 1, kTrain, "F u2 m1"); },
       "rank 1, TRAIN: FORWARD of unit 2 is missing for micro-batch 1"},
      {"doubled backward", DataJob(), [](Plan& p) { Copy(p, 0, 0, "I u1 m0"); },
       "BACKWARD_INPUT of unit 1 is there 2 times for micro-batch 0"},
      {"lost gradient", DataJob(),
       [](Plan& p) { Drop(p, 0, kTrain, "W u0 m1"); },
       "BACKWARD_WEIGHT of unit 0 is missing for micro-batch 1"},
      {"lost validation", DataJob(),
       [](Plan& p) { Drop(p, 0, Program::VALIDATE, "F u3 m7"); },
       "rank 0, VALIDATE: FORWARD of unit 3 is missing for micro-batch 7"},
      {"lost in a pipeline", PipelineJob("1f1b"),
       [](Plan& p) { Drop(p, 1, kTrain, "F u2 m1"); },
       "rank 1, TRAIN: FORWARD of unit 2 is missing for micro-batch 1"},
      {"on both replicas of a stage", PipelineJob("chimera"),
       [](Plan& p) { Copy(p, 0, 1, "F u1 m0"); },
       "TRAIN: FORWARD of unit 1 is there 2 times for micro-batch 0 on ranks "
       "0, 1 together"},
      {"a version that is gone", PipelineJob("pipedream"),
       [](Plan& p) {
         At(p, 0, "F u1 m0 +1").set_weight_version(2);
         At(p, 0, "I u1 m0 v1").set_weight_version(3);
       },
       "uses weights that are 2 steps old, and the rank keeps 2 versions: they "
       "no longer exist"},
      {"backward with other weights", PipelineJob("pipedream"),
       [](Plan& p) { At(p, 0, "I u1 m0 v1").clear_weight_version(); },
       "I u1 m0: uses weights that are 0 steps old, its forward used some that "
       "are now 1"},
      {"not filled", PipelineJob("pipedream"),
       [](Plan& p) { Drop(p, 0, Program::FILL, "F u1 m0 +1"); },
       "FILL: FORWARD of unit 1 is missing for micro-batch 0"},
  };
  for (const Fault& fault : faults) {
    Plan plan = ExamplePlan(fault.job);
    fault.plant(plan);
    const absl::Status status = CheckPasses(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message))
        << fault.name;
  }
}

}  // namespace
}  // namespace troupe
