#include "proto/plan/check_work.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

JobSpec Job() {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  job.mutable_checkpoint()->set_directory("checkpoints");
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(5);
  return job;
}

void Drop(Plan& plan, int rank, Program::Kind kind, const char* text) {
  Program& program = ProgramOf(plan, rank, kind);
  Remove(program, IndexOf(program, text));
}

void Double(Plan& plan, int rank, Program::Kind kind, const char* text) {
  Program& program = ProgramOf(plan, rank, kind);
  const Instruction copy = program.instructions(IndexOf(program, text));
  *program.add_instructions() = copy;
}

constexpr auto kTrain = Program::TRAIN;

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};

TEST(CheckWork, AcceptsACompiledPlan) {
  EXPECT_TRUE(CheckWork(ExamplePlan(Job())).ok());
}

const Fault kFaults[] = {
    {"gradient not summed", [](Plan& p) { Drop(p, 1, kTrain, "R u1 g0"); },
     "rank 1, TRAIN: REDUCE_GRADS of unit 1 is missing"},
    {"gradient summed twice", [](Plan& p) { Double(p, 1, kTrain, "R u1 g0"); },
     "REDUCE_GRADS of unit 1 is there 2 times"},
    {"gradient summed too early",
     [](Plan& p) {
       Program& train = ProgramOf(p, 0, kTrain);
       train.mutable_instructions()->SwapElements(IndexOf(train, "R u0 g0"),
                                                  IndexOf(train, "W u0 m1"));
     },
     "W u0 m1 adds to the gradients of unit 0 after they were reduced"},
    {"norm counted twice",
     [](Plan& p) {
       Program& from = ProgramOf(p, 0, kTrain);
       *ProgramOf(p, 1, kTrain).add_instructions() =
           from.instructions(IndexOf(from, "N u0 g0"));
     },
     "rank 1, TRAIN: GRAD_NORM of unit 0 is there 2 times"},
    {"clipped by what is not summed",
     [](Plan& p) { Drop(p, 1, kTrain, "A g0"); },
     "rank 1, TRAIN: O u0: clips by a norm that the ranks have not summed"},
    {"clipped by the norm of the step before",
     [](Plan& p) {
       Program& train = ProgramOf(p, 1, kTrain);
       train.mutable_instructions(IndexOf(train, "A g0"))->set_ahead(-1);
     },
     "clips by a norm that the ranks have not summed"},
    {"norm summed too early",
     [](Plan& p) {
       Program& train = ProgramOf(p, 1, kTrain);
       train.mutable_instructions()->SwapElements(IndexOf(train, "A g0"),
                                                  IndexOf(train, "N u0 g0"));
     },
     "N u0 g0: adds to the norm after it was summed"},
    {"norm not counted", [](Plan& p) { Drop(p, 1, kTrain, "N u2 g0"); },
     "GRAD_NORM of unit 2 is missing"},
    {"no step", [](Plan& p) { Drop(p, 1, kTrain, "O u1"); },
     "rank 1, TRAIN: STEP of unit 1 is missing"},
    {"stepped twice", [](Plan& p) { Double(p, 1, kTrain, "O u1"); },
     "STEP of unit 1 is there 2 times"},
    {"not saved", [](Plan& p) { Drop(p, 0, Program::CHECKPOINT, "K u0 g0"); },
     "SNAPSHOT of unit 0 is missing"},
    {"no owner",
     [](Plan& p) {
       auto& placements = *p.mutable_roles(0)->mutable_placements();
       for (int i = placements.size() - 1; i >= 0; --i) {
         if (placements[i].unit() == 2) placements.DeleteSubrange(i, 1);
       }
     },
     "unit 2 is on no rank: its parameters have no owner"},
    {"a copy of the group",
     [](Plan& p) {
       *p.add_groups() = p.groups(0);
       p.mutable_groups(1)->set_name("again");
       Program& train = ProgramOf(p, 0, kTrain);
       train.mutable_instructions(IndexOf(train, "R u0 g0"))->set_group(1);
     },
     "R u0 g1: unit 0 sums its gradients over group data"},
    {"summed with nobody",
     [](Plan& p) {
       p.mutable_roles(0)
           ->mutable_placements(0)
           ->mutable_parts(0)
           ->clear_summed();
     },
     "part 0 of unit 0 is on ranks 0, 1 but rank 0 sums its gradients over "
     "ranks 0"},
    {"shared with nobody",
     [](Plan& p) {
       p.mutable_roles(0)
           ->mutable_placements(1)
           ->mutable_parts(0)
           ->clear_shared();
     },
     "part 0 of unit 1 is on ranks 0, 1 but rank 0 shares it with ranks 0"},
    {"norm of all on each",
     [](Plan& p) {
       Program& train = ProgramOf(p, 1, kTrain);
       train.mutable_instructions(IndexOf(train, "N u1 g0"))->clear_group();
     },
     "rank 1, TRAIN: N u1: is not dealt over those who have the same, data"},
    {"a sum of parts that are not there",
     [](Plan& p) {
       Program& train = ProgramOf(p, 1, kTrain);
       train.mutable_instructions(IndexOf(train, "R u0 g0"))->set_part_count(2);
     },
     "R u0 q0-1 g0: unit 0 has 1 trained parts"},
    {"norm of a part that is not there",
     [](Plan& p) {
       Program& train = ProgramOf(p, 1, kTrain);
       train.mutable_instructions(IndexOf(train, "N u1 g0"))->set_part(1);
     },
     "N u1 q1 g0: its unit has 1 parts"},
    {"program missing on one rank",
     [](Plan& p) {
       ProgramOf(p, 1, kTrain);
       p.mutable_roles(1)->mutable_programs()->RemoveLast();
     },
     "1 of 2 roles have a CHECKPOINT program"},
};

TEST(CheckWork, NamesTheFault) {
  for (const Fault& fault : kFaults) {
    Plan plan = ExamplePlan(Job());
    fault.plant(plan);
    const absl::Status status = CheckWork(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message))
        << fault.name;
  }
}

int GroupNamed(const Plan& plan, const std::string& name) {
  for (int g = 0; g < plan.groups_size(); ++g) {
    if (plan.groups(g).name() == name) return g;
  }
  ADD_FAILURE() << "no group " << name;
  return 0;
}

// Slices over two neighbours of four replicas: each second one has the same.
TEST(CheckWork, KnowsWhoHasTheSameSlice) {
  JobSpec job = Job();
  job.mutable_parallelism()->set_data(4);
  job.mutable_training()->set_global_batch_size(16);
  job.mutable_parallelism()->set_zero(3);
  job.mutable_parallelism()->set_zero_size(2);
  const Plan plan = ExamplePlan(job);
  EXPECT_TRUE(CheckWork(plan).ok());
  Plan summed = plan;
  summed.mutable_roles(0)->mutable_placements(1)->mutable_parts(0)->set_summed(
      GroupNamed(plan, "data by 2"));
  EXPECT_THAT(std::string(CheckWork(summed).message()),
              HasSubstr("part 0 of unit 1 is on ranks 0, 2 but rank 0 sums its "
                        "gradients over ranks 0, 1"));
  Plan shared = plan;
  shared.mutable_roles(0)
      ->mutable_placements(2)
      ->mutable_parts(0)
      ->clear_shared();
  EXPECT_THAT(std::string(CheckWork(shared).message()),
              HasSubstr("part 0 of unit 2 is on ranks 0, 2 but rank 0 shares "
                        "it with ranks 0"));
}

// Ranks that have other parts of a unit have no slices of this one.
TEST(CheckWork, RefusesSlicesOverThoseWhoHaveSomethingElse) {
  JobSpec job = Job();
  job.mutable_parallelism()->set_tensor(2);
  job.mutable_parallelism()->set_zero(1);
  Plan plan = ExamplePlan(job);
  EXPECT_TRUE(CheckWork(plan).ok());
  plan.mutable_roles(0)->mutable_placements(1)->mutable_parts(0)->set_dealt(
      GroupNamed(plan, "tensor-exchanges"));
  EXPECT_THAT(std::string(CheckWork(plan).message()),
              HasSubstr("but dealt over group tensor-exchanges, which has "
                        "others"));
}

// A role says the same of thousands of ranks: it is asked once, and a fault
// lists some of them.
TEST(CheckWork, AcceptsThousandsOfSlices) {
  JobSpec job = Job();
  job.mutable_parallelism()->set_data(4096);
  job.mutable_training()->set_global_batch_size(2 * 4096);
  job.mutable_parallelism()->set_zero(3);
  Plan plan = ExamplePlan(job);
  EXPECT_TRUE(CheckWork(plan).ok());
  plan.mutable_roles(0)->mutable_placements(0)->mutable_parts(0)->clear_dealt();
  EXPECT_THAT(std::string(CheckWork(plan).message()),
              HasSubstr("part 0 of unit 0 is on ranks 0, 1, 2, 3, 4, 5, 6, 7, "
                        "8, 9, 10, 11, 12, 13, 14, 15 and 4080 more but rank 0 "
                        "sums its gradients over ranks 0"));
}

}  // namespace
}  // namespace troupe
