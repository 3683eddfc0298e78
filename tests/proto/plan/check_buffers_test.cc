#include "proto/plan/check_buffers.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planned_lanes.h"
#include "tests/scheduler/synthetic_job.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Program& Train(Plan& plan) { return ProgramOf(plan, 0, Program::TRAIN); }

Instruction& At(Plan& plan, const char* text) {
  return *Train(plan).mutable_instructions(IndexOf(Train(plan), text));
}

std::string Message(const Plan& plan) {
  const absl::Status status = CheckBuffers(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(CheckBuffers, AcceptsACompiledPlan) {
  EXPECT_TRUE(
      CheckBuffers(ExamplePlan(ExampleJob({.data = 2, .micro_batches = 3})))
          .ok());
}

TEST(CheckBuffers, ReadWithoutWrite) {
  Plan plan = ExamplePlan(ExampleJob({.micro_batches = 3}));
  At(plan, "L m2").clear_operands();
  EXPECT_THAT(Message(plan),
              AllOf(HasSubstr("rank 0, TRAIN: F u0 m2 reads BATCH m2"),
                    HasSubstr("but slot")));
  Plan first = ExamplePlan(ExampleJob({}));
  At(first, "L m0").clear_operands();
  EXPECT_THAT(Message(first), HasSubstr("which nothing has written"));
}

TEST(CheckBuffers, ReadWithoutWaiting) {
  Plan plan = ExamplePlan(ExampleJob({}));
  At(plan, "F u0 m0").clear_after();
  EXPECT_THAT(Message(plan),
              HasSubstr("F u0 m0 reads BATCH m0, without waiting for its "
                        "writer L m0"));
}

TEST(CheckBuffers, SlotReusedBeforeItsReaderIsDone) {
  Plan plan = ExamplePlan(ExampleJob({.micro_batches = 3}));
  At(plan, "L m2").clear_after();
  EXPECT_THAT(Message(plan), AllOf(HasSubstr("L m2 writes BATCH m2"),
                                   HasSubstr("without waiting for"),
                                   HasSubstr("which uses it")));
}

TEST(CheckBuffers, ReadAfterTheSlotWasGivenAway) {
  Plan plan = ExamplePlan(ExampleJob({}));
  // The second block's stash is moved onto the first one's while both live.
  Program& train = Train(plan);
  int stash_slot = -1;
  for (Buffer& buffer : *train.mutable_buffers()) {
    if (buffer.kind() != Buffer::STASH || buffer.unit() > 2) continue;
    if (buffer.unit() == 1) stash_slot = buffer.slot();
    if (buffer.unit() == 2) buffer.set_slot(stash_slot);
  }
  EXPECT_THAT(Message(plan), AllOf(HasSubstr("reads STASH u1 m0"),
                                   HasSubstr("holds STASH u2 m0")));
}

Plan Pipedream() {
  return ExamplePlan(SyntheticJob(
      {.pipeline = 4, .schedule = "pipedream", .micro_batches = 8}));
}

Buffer& ActivationOf(Program& program, int micro_batch) {
  for (Buffer& buffer : *program.mutable_buffers()) {
    if (buffer.kind() == Buffer::ACTIVATION && buffer.unit() == 0 &&
        buffer.micro_batch() == micro_batch) {
      return buffer;
    }
  }
  CHECK(false) << "no activation of micro-batch " << micro_batch;
}

// Of those that the step before left, the first is used when all are there.
TEST(CheckBuffers, CarriedValueWrittenOverBeforeItsUse) {
  Plan plan = Pipedream();
  EXPECT_TRUE(CheckBuffers(plan).ok());
  const Buffer& carried = ActivationOf(Train(plan), 0);
  ASSERT_TRUE(carried.carried());
  ActivationOf(Train(plan), 3).set_slot(carried.slot());
  EXPECT_THAT(Message(plan), AllOf(HasSubstr("reads ACTIVATION u0 m0"),
                                   HasSubstr("holds ACTIVATION u0 m3")));
}

TEST(CheckBuffers, CarriedValueLostAtTheEnd) {
  Plan plan = Pipedream();
  Program& train = Train(plan);
  Buffer other = ActivationOf(train, 0);
  other.clear_carried();
  other.set_micro_batch(7);
  *train.add_buffers() = other;
  // After all others, as a last one that has no more use for the old contents.
  Instruction last = ParseProgram("F u0 m7\n")->instructions(0);
  for (int i = 0; i < train.instructions_size(); ++i) last.add_after(i);
  Instruction::Operand& output = *last.add_operands();
  output.set_part(Instruction::OUTPUT);
  output.set_buffer(train.buffers_size() - 1);
  output.set_access(Instruction::WRITE);
  *train.add_instructions() = last;
  EXPECT_THAT(Message(plan), AllOf(HasSubstr("holds ACTIVATION u0 m7"),
                                   HasSubstr("later programs look for "
                                             "ACTIVATION u0 m0")));
}

// Gradients of earlier micro-batches would be lost.
TEST(CheckBuffers, GradientsTakenForZerosThatAreNot) {
  Plan plan = ExamplePlan(ExampleJob({.micro_batches = 2}));
  for (Instruction::Operand& operand :
       *At(plan, "W u1 m1").mutable_operands()) {
    if (operand.part() != Instruction::WEIGHT_GRADIENTS) continue;
    EXPECT_EQ(operand.access(), Instruction::ADD);
    operand.set_access(Instruction::ADD_TO_ZEROS);
  }
  EXPECT_THAT(Message(plan),
              HasSubstr("W u1 m1 takes PARAMETER_GRADIENTS u1 for zeros, to "
                        "which W u1 m0 has added"));
}

TEST(CheckBuffers, ResidentBuffersShareNothing) {
  Plan plan = ExamplePlan(ExampleJob({}));
  Program& train = Train(plan);
  int slot = -1;
  for (Buffer& buffer : *train.mutable_buffers()) {
    if (buffer.kind() != Buffer::PARAMETERS) continue;
    if (slot < 0) slot = buffer.slot();
    buffer.set_slot(slot);
  }
  EXPECT_THAT(Message(plan), HasSubstr("resident buffers have their own"));
}

}  // namespace
}  // namespace troupe
