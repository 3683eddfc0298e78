// Plans that make values again, broken in the ways in which that can be: every
// fault is found, and named.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kTrain = Program::TRAIN;

JobSpec RecomputeJob(int tensor = 1) {
  JobSpec job = ExampleJob({.micro_batches = 2});
  job.mutable_memory()->mutable_recompute()->set_mode("full");
  job.mutable_parallelism()->set_tensor(tensor);
  return job;
}

Instruction& At(Plan& plan, const std::string& text) {
  Program& program = ProgramOf(plan, 0, kTrain);
  return *program.mutable_instructions(IndexOf(program, text));
}

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
  int tensor = 1;
};

const Fault kFaults[] = {
    {"none where backward needs it",
     [](Plan& p) {
       Program& program = ProgramOf(p, 0, kTrain);
       Remove(program, IndexOf(program, "C u1 m1"));
     },
     "RECOMPUTE of unit 1 is missing for micro-batch 1"},
    {"one that is there twice",
     [](Plan& p) {
       Program& program = ProgramOf(p, 0, kTrain);
       *program.add_instructions() =
           program.instructions(IndexOf(program, "C u1 m1"));
     },
     "RECOMPUTE of unit 1 is there 2 times for micro-batch 1"},
    {"behind the backward that reads it",
     [](Plan& p) {
       Instruction& again = At(p, "C u1 m0");
       Instruction& input = At(p, "I u1 m0");
       again.Swap(&input);
       again.mutable_after()->Swap(input.mutable_after());
     },
     "I u1 m0 reads RECOMPUTED u1 m0, "},
    {"of another micro-batch",
     [](Plan& p) { At(p, "C u1 m0").set_micro_batch(1); },
     "RECOMPUTE of unit 1 is missing for micro-batch 0"},
    {"of a unit that keeps all", [](Plan& p) { At(p, "C u1 m0").set_unit(3); },
     "RECOMPUTE of unit 1 is missing for micro-batch 0"},
    {"of one that it is not needed of",
     [](Plan& p) {
       Program& program = ProgramOf(p, 0, kTrain);
       Instruction& more = *program.add_instructions();
       more = program.instructions(IndexOf(program, "C u1 m0"));
       more.set_unit(3);
     },
     "C u3 m0: the plan's units have no such pass"},
    {"from other weights",
     [](Plan& p) { At(p, "C u1 m0").set_weight_version(1); },
     "C u1 m0 v1: uses weights that are 1 steps old"},
    {"that leaves it nowhere",
     [](Plan& p) { At(p, "C u1 m0").clear_operands(); },
     "C u1 m0: its operands have not all that its ops read"},
    {"an exchange that is not done again",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       for (int i = 0; i < program.instructions_size(); ++i) {
         if (!program.instructions(i).exchange().again()) continue;
         Remove(program, i);
         return;
       }
     },
     "EXCHANGE of op 5, again, of unit 2 is missing for micro-batch 0",
     /*tensor=*/2},
    {"one that is taken for forward's",
     [](Plan& p) {
       for (Instruction& i : *ProgramOf(p, 1, kTrain).mutable_instructions()) {
         i.mutable_exchange()->set_again(false);
       }
     },
     "of unit 1 is there 2 times", /*tensor=*/2},
};

TEST(CheckRecompute, NamesTheFault) {
  for (const Fault& fault : kFaults) {
    Plan plan = ExamplePlan(RecomputeJob(fault.tensor));
    fault.plant(plan);
    const absl::Status status = CheckPrograms(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()).substr(0, 400),
                HasSubstr(fault.message))
        << fault.name;
  }
}

}  // namespace
}  // namespace troupe
