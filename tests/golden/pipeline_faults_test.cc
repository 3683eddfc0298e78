// What check_program finds in plans with pipelines: each fault is planted in a
// compiled plan, and must be named.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "scheduler/passes/lanes.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kTrain = Program::TRAIN;

JobSpec Job(const char* schedule) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 4, .blocks = 2});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_pipeline_schedule(schedule);
  job.mutable_model()->set_tie_word_embeddings(false);
  return job;
}

// Of 1F1B, ranks 0 and 1 have the first stage, units 0 and 1 or so, and hand
// that unit's activations over in group 3.
Plan Compiled() { return ExamplePlan(Job("1f1b")); }

int TransferUnit(const Plan& plan) {
  return plan.stages(0).unit() + plan.stages(0).unit_count() - 1;
}

constexpr bool kActivation = false;
constexpr bool kGradient = true;

// The index of a transfer of a micro-batch.
int IndexOfTransfer(const Program& program, Instruction::Kind kind,
                    bool gradient, int micro_batch) {
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    if (instruction.kind() == kind && instruction.gradient() == gradient &&
        instruction.micro_batch() == micro_batch) {
      return i;
    }
  }
  ADD_FAILURE() << "no such transfer";
  return -1;
}

// Moves an instruction to another place; `after` of all is forgotten.
void Move(Program& program, int from, int to) {
  auto& instructions = *program.mutable_instructions();
  for (; from > to; --from) instructions.SwapElements(from, from - 1);
  for (; from < to; ++from) instructions.SwapElements(from, from + 1);
  for (Instruction& instruction : instructions) instruction.clear_after();
}

std::string Fault(const Plan& plan) {
  const absl::Status status = CheckPrograms(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(CheckPipelines, AcceptsWhatIsCompiled) {
  EXPECT_TRUE(CheckPrograms(Compiled()).ok());
}

TEST(CheckPipelines, MissingRecv) {
  Plan plan = Compiled();
  Program& train = ProgramOf(plan, 2, kTrain);
  Remove(train, IndexOfTransfer(train, Instruction::RECV, kActivation, 3));
  EXPECT_THAT(Fault(plan),
              AllOf(HasSubstr("rank 0, TRAIN: transfer 3 to rank 2 "
                              "(ACTIVATIONS lane) is SEND u"),
                    HasSubstr("but rank 2 has RECV nothing"),
                    HasSubstr("rank 0   COMPUTE")));
}

TEST(CheckPipelines, SwappedOrderBetweenTwoRanks) {
  Plan plan = Compiled();
  Program& train = ProgramOf(plan, 2, kTrain);
  train.mutable_instructions()->SwapElements(
      IndexOfTransfer(train, Instruction::RECV, kActivation, 1),
      IndexOfTransfer(train, Instruction::RECV, kActivation, 2));
  for (Instruction& instruction : *train.mutable_instructions()) {
    instruction.clear_after();
  }
  EXPECT_THAT(Fault(plan),
              AllOf(HasSubstr("transfer 1 to rank 2"),
                    HasSubstr("m1, but rank 2 has RECV"), HasSubstr("m2")));
}

TEST(CheckPipelines, CollectivesInAnotherOrder) {
  Plan plan = Compiled();
  Program& train = ProgramOf(plan, 1, kTrain);
  int first = -1;
  int last = -1;
  for (int i = 0; i < train.instructions_size(); ++i) {
    if (train.instructions(i).kind() != Instruction::REDUCE_GRADS) continue;
    if (first < 0) first = i;
    last = i;
  }
  ASSERT_LT(first, last);
  Move(train, first, last);
  EXPECT_THAT(Fault(plan), AllOf(HasSubstr("collective 0 of group data"),
                                 HasSubstr("on rank 1")));
}

// On one lane for both directions, each rank waits to send before the other
// receives; on a lane for each, the same order is fine.
TEST(CheckPipelines, LaneOrderDeadlockOfOneNetworkLane) {
  Plan plan = Compiled();
  const auto jam = [](Plan& jammed, bool one_lane) {
    // Rank 2 wants the second activation before it hands back the first
    // gradient; rank 0 wants that before it hands on the second activation.
    Program& first = ProgramOf(jammed, 0, kTrain);
    Move(first, IndexOfTransfer(first, Instruction::RECV, kGradient, 0),
         IndexOfTransfer(first, Instruction::SEND, kActivation, 0) + 1);
    Program& last = ProgramOf(jammed, 2, kTrain);
    Move(last, IndexOfTransfer(last, Instruction::RECV, kActivation, 1),
         IndexOfTransfer(last, Instruction::RECV, kActivation, 0) + 1);
    if (!one_lane) return;
    for (const int rank : {0, 2}) {
      for (Instruction& i :
           *ProgramOf(jammed, rank, kTrain).mutable_instructions()) {
        if (i.gradient()) i.set_lane(LaneFor(i.kind()));
      }
    }
  };
  Plan two_lanes = plan;
  jam(two_lanes, /*one_lane=*/false);
  const absl::Status fine = CheckPrograms(two_lanes);
  EXPECT_THAT(std::string(fine.message()), Not(HasSubstr("never ends")));
  jam(plan, /*one_lane=*/true);
  EXPECT_THAT(Fault(plan), AllOf(HasSubstr("never ends"),
                                 HasSubstr("(ACTIVATIONS lane) for rank 2"),
                                 HasSubstr("(ACTIVATIONS lane) for rank 0")));
}

TEST(CheckPipelines, LostMicroBatch) {
  Plan plan = Compiled();
  Program& train = ProgramOf(plan, 2, kTrain);
  Remove(train,
         IndexOf(train, absl::StrCat("F u", TransferUnit(plan) + 1, " m2")));
  EXPECT_THAT(Fault(plan), HasSubstr("is missing for micro-batch 2"));
}

TEST(CheckPipelines, DoubledMicroBatch) {
  Plan plan = Compiled();
  Program& train = ProgramOf(plan, 2, kTrain);
  const Instruction copy = train.instructions(
      IndexOf(train, absl::StrCat("F u", TransferUnit(plan) + 1, " m2")));
  *train.add_instructions() = copy;
  EXPECT_THAT(Fault(plan), HasSubstr("is there 2 times for micro-batch 2"));
}

// Of two stashes whose lives overlap, one is put where the other lies.
TEST(CheckPipelines, UseOfASlotThatWasGivenAway) {
  Plan plan = ExamplePlan(Job("gpipe"));
  Program& train = ProgramOf(plan, 2, kTrain);
  Buffer* buffers[2] = {nullptr, nullptr};
  for (Buffer& buffer : *train.mutable_buffers()) {
    if (buffer.kind() != Buffer::STASH || buffer.micro_batch() > 1 ||
        buffer.unit() != TransferUnit(plan) + 1) {
      continue;
    }
    buffers[buffer.micro_batch()] = &buffer;
  }
  ASSERT_NE(buffers[0]->slot(), buffers[1]->slot());
  buffers[1]->set_slot(buffers[0]->slot());
  buffers[1]->set_offset(buffers[0]->offset());
  EXPECT_THAT(Fault(plan), AllOf(HasSubstr("reads STASH"),
                                 HasSubstr("but slot"), HasSubstr("holds")));
}

TEST(CheckPipelines, WeightVersionThatNoLongerExists) {
  Plan plan = ExamplePlan(Job("pipedream"));
  for (Slot& slot : *plan.mutable_roles(0)->mutable_slots()) {
    if (slot.item() == "parameters") slot.clear_copies();
  }
  EXPECT_THAT(Fault(plan), HasSubstr("programs away, and slot"));
  Plan older = ExamplePlan(Job("pipedream"));
  Program& train = ProgramOf(older, 0, kTrain);
  const std::string unit = absl::StrCat("u", TransferUnit(older), " m0");
  train.mutable_instructions(IndexOf(train, absl::StrCat("F ", unit, " +1")))
      ->set_weight_version(2);
  train.mutable_instructions(IndexOf(train, absl::StrCat("I ", unit, " v1")))
      ->set_weight_version(3);
  EXPECT_THAT(Fault(older), HasSubstr("they no longer exist"));
}

// Activations of one point of the program are what does not fit: GPipe stashes
// all micro-batches, 1F1B as many as there are stages.
TEST(CheckPipelines, BudgetOverflowAtOnePoint) {
  const auto job = [](const char* schedule) {
    JobSpec wide = ExampleJob({.micro_batches = 8, .blocks = 2});
    wide.mutable_parallelism()->set_pipeline(2);
    wide.mutable_parallelism()->set_pipeline_schedule(schedule);
    return wide;
  };
  const Plan frugal = ExamplePlan(job("1f1b"));
  const Plan hungry = ExamplePlan(job("gpipe"));
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  for (int r = 0; r < 2; ++r) {
    int64_t bytes = 0;
    for (const Slot& slot : frugal.roles(r).slots()) bytes += slot.bytes();
    workers[r].mutable_budgets(0)->set_bytes(bytes);
  }
  EXPECT_TRUE(CheckBudgets(frugal, workers).ok());
  EXPECT_THAT(std::string(CheckBudgets(hungry, workers).message()),
              AllOf(HasSubstr("rank 0 on worker worker-0: device memory"),
                    HasSubstr("activations")));
}

}  // namespace
}  // namespace troupe
