#include "proto/plan/check_buffers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/operand.h"
#include "proto/plan/program_text.h"
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

// REQUIRES that there is one; of the rank or of the step: unit or micro-batch
// -1.
Buffer& BufferOf(Program& program, Buffer::Kind kind, int unit,
                 int micro_batch) {
  for (Buffer& buffer : *program.mutable_buffers()) {
    if (buffer.kind() != kind) continue;
    if ((buffer.has_unit() ? buffer.unit() : -1) != unit) continue;
    if ((buffer.has_micro_batch() ? buffer.micro_batch() : -1) == micro_batch) {
      return buffer;
    }
  }
  CHECK(false) << "no " << Buffer::Kind_Name(kind) << " u" << unit << " m"
               << micro_batch;
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
  EXPECT_THAT(Message(first),
              HasSubstr("of which nothing has written bytes 0 to"));
}

// Others have written the rest of the buffer.
TEST(CheckBuffers, BytesReadWithoutWrite) {
  JobSpec job = ExampleJob({});
  job.mutable_parallelism()->set_tensor(2);
  Plan plan = ExamplePlan(job);
  Instruction& forward = At(plan, "F u1 s1 m0");
  for (int i = 0; i < forward.operands_size(); ++i) {
    if (forward.operands(i).part() != Instruction::SAVED) continue;
    forward.mutable_operands()->DeleteSubrange(i--, 1);
  }
  EXPECT_THAT(Message(plan),
              AllOf(HasSubstr("reads STASH u1 m0, of which nothing has "
                              "written bytes"),
                    HasSubstr("of slot")));
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
  const Buffer& first = BufferOf(Train(plan), Buffer::STASH, 1, 0);
  Buffer& second = BufferOf(Train(plan), Buffer::STASH, 2, 0);
  second.set_slot(first.slot());
  second.set_offset(first.offset());
  EXPECT_THAT(Message(plan), AllOf(HasSubstr("reads STASH u1 m0"),
                                   HasSubstr("holds STASH u2 m0")));
}

// Both live while the backward passes run; a byte of either's end is enough.
TEST(CheckBuffers, OneByteIsShared) {
  for (const int sign : {-1, 1}) {
    Plan plan = ExamplePlan(ExampleJob({}));
    Buffer& first = BufferOf(Train(plan), Buffer::STASH, 1, 0);
    Buffer& second = BufferOf(Train(plan), Buffer::STASH, 2, 0);
    // Where nothing else is, one behind the other.
    Slot& slot = *plan.mutable_roles(0)->mutable_slots(first.slot());
    Buffer& lower = sign < 0 ? first : second;
    Buffer& upper = sign < 0 ? second : first;
    lower.set_offset(slot.bytes());
    upper.set_offset(slot.bytes() + lower.bytes());
    second.set_slot(first.slot());
    slot.set_bytes(upper.offset() + upper.bytes());
    ASSERT_EQ(CheckBuffers(plan), absl::OkStatus());
    upper.set_offset(upper.offset() - 1);
    EXPECT_THAT(
        Message(plan),
        AllOf(HasSubstr("reads STASH u1 m0"), HasSubstr("holds STASH u2 m0"),
              HasSubstr(absl::StrCat("from byte ", upper.offset(), " to ",
                                     upper.offset() + 1))));
  }
}

// Even where nobody reads it again: a kernel would write over what it reads.
TEST(CheckBuffers, OneInstructionWritesOverWhatItReads) {
  Plan plan = ExamplePlan(ExampleJob({}));
  Buffer& input = BufferOf(Train(plan), Buffer::ACTIVATION, 0, 0);
  Buffer& output = BufferOf(Train(plan), Buffer::ACTIVATION, 1, 0);
  output.set_slot(input.slot());
  output.set_offset(input.offset());
  EXPECT_THAT(Message(plan),
              HasSubstr("F u1 m0 writes ACTIVATION u1 m0 over ACTIVATION u0 m0,"
                        " which it uses too"));
}

// Lives one after the other at different offsets of the same bytes: a later one
// must wait for the users of any of them.
TEST(CheckBuffers, BytesReusedBeforeTheirReaderIsDone) {
  Plan plan = ExamplePlan(ExampleJob({.micro_batches = 4}));
  Program& train = Train(plan);
  Buffer& early = BufferOf(train, Buffer::BATCH, -1, 1);
  Buffer& late = BufferOf(train, Buffer::BATCH, -1, 3);
  Slot& slot = *plan.mutable_roles(0)->mutable_slots(early.slot());
  early.set_offset(slot.bytes());
  late.set_slot(early.slot());
  late.set_offset(slot.bytes() + early.bytes() - 1);
  slot.set_bytes(late.offset() + late.bytes());
  Instruction& load = At(plan, "L m3");
  load.clear_after();
  EXPECT_THAT(Message(plan), AllOf(HasSubstr("L m3 writes BATCH m3 to bytes"),
                                   HasSubstr("without waiting for"),
                                   HasSubstr("which uses it")));
  for (const char* const reader : {"W u0 m1", "F u3 m1"}) {
    load.add_after(IndexOf(train, reader));
  }
  EXPECT_EQ(CheckBuffers(plan), absl::OkStatus());
}

// With a buffer's first byte the other's life is over, and a part that is
// written again does not bring the rest back.
TEST(CheckBuffers, ReadOfAPartThatWasWrittenOver) {
  Plan plan = ExamplePlan(ExampleJob({.micro_batches = 4}));
  Program& train = Train(plan);
  int early = 0;
  while (train.buffers(early).kind() != Buffer::BATCH ||
         train.buffers(early).micro_batch() != 1) {
    ++early;
  }
  ASSERT_EQ(train.buffers(early).slot(),
            BufferOf(train, Buffer::BATCH, -1, 3).slot());
  ASSERT_LT(IndexOf(train, "L m3"), IndexOf(train, "F u0 m2"));
  const auto use = [&](const char* text, Instruction::Access access,
                       const BytesUsed& bytes) {
    Instruction::Operand& operand = *At(plan, text).add_operands();
    operand.set_part(Instruction::BATCH);
    operand.set_buffer(early);
    operand.set_access(access);
    operand.set_offset(bytes.begin);
    operand.set_bytes(bytes.end - bytes.begin);
  };
  At(plan, "L m3").mutable_operands(0)->set_bytes(64);
  use("F u0 m2", Instruction::WRITE, {64, 128});
  use("F u1 m2", Instruction::READ, {0, 128});
  EXPECT_THAT(Message(plan), AllOf(HasSubstr("F u1 m2 reads BATCH m1"),
                                   HasSubstr("holds BATCH m3 since L m3")));
}

Plan Pipedream() {
  return ExamplePlan(SyntheticJob(
      {.pipeline = 4, .schedule = "pipedream", .micro_batches = 8}));
}

// Of those that the step before left, the first is used when all are there.
TEST(CheckBuffers, CarriedValueWrittenOverBeforeItsUse) {
  Plan plan = Pipedream();
  EXPECT_TRUE(CheckBuffers(plan).ok());
  const Buffer& carried = BufferOf(Train(plan), Buffer::ACTIVATION, 0, 0);
  ASSERT_TRUE(carried.carried());
  Buffer& other = BufferOf(Train(plan), Buffer::ACTIVATION, 0, 3);
  other.set_slot(carried.slot());
  other.set_offset(carried.offset());
  EXPECT_THAT(Message(plan), AllOf(HasSubstr("reads ACTIVATION u0 m0"),
                                   HasSubstr("holds ACTIVATION u0 m3")));
}

TEST(CheckBuffers, CarriedValueLostAtTheEnd) {
  Plan plan = Pipedream();
  Program& train = Train(plan);
  Buffer other = BufferOf(train, Buffer::ACTIVATION, 0, 0);
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
  EXPECT_THAT(Message(plan), HasSubstr("what outlives a program has its own"));
}

// Not even in a program that has no use for them.
TEST(CheckBuffers, ResidentBuffersShareNothingWithOtherPrograms) {
  JobSpec job = ExampleJob({});
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(5);
  Plan plan = ExamplePlan(job);
  const Buffer& moments = BufferOf(Train(plan), Buffer::OPTIMIZER_STATE, 1, -1);
  Program& validate = ProgramOf(plan, 0, Program::VALIDATE);
  Buffer& activation = BufferOf(validate, Buffer::ACTIVATION, 1, 0);
  activation.set_slot(moments.slot());
  activation.set_offset(0);
  EXPECT_THAT(Message(plan),
              AllOf(HasSubstr("are shared by OPTIMIZER_STATE u1 and ACTIVATION "
                              "u1 m0"),
                    HasSubstr("what outlives a program has its own")));
}

// Two values that both wait for the next program.
TEST(CheckBuffers, CarriedBuffersShareNothingWithOneAnother) {
  Plan plan = Pipedream();
  const Buffer* first = nullptr;
  Program& train = Train(plan);
  for (Buffer& buffer : *train.mutable_buffers()) {
    if (buffer.kind() != Buffer::ACTIVATION || !buffer.carried()) continue;
    if (first == nullptr) first = &buffer;
    buffer.set_slot(first->slot());
    buffer.set_offset(first->offset());
  }
  EXPECT_THAT(Message(plan), AllOf(HasSubstr("are shared by ACTIVATION u0 m0"),
                                   HasSubstr("has its own")));
}

}  // namespace
}  // namespace troupe
