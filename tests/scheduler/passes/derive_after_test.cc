#include "scheduler/passes/derive_after.h"

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

// A role with `slots` slots and, for each, a buffer of the same number.
Draft DraftOf(int slots, const char* program) {
  Draft draft;
  *draft.plan.mutable_lanes() = AllLanes();
  Role& role = *draft.plan.add_roles();
  *role.add_programs() = *ParseProgram(program);
  for (int i = 0; i < slots; ++i) {
    role.add_slots();
    Buffer& buffer = *role.mutable_programs(0)->add_buffers();
    buffer.set_slot(i);
    buffer.set_bytes(256);
  }
  return draft;
}

std::string Derived(int slots, const char* program) {
  Draft draft = DraftOf(slots, program);
  DeriveAfter(draft);
  return ProgramText(draft.plan.roles(0).programs(0));
}

TEST(DeriveAfter, ReadersWaitForTheWriter) {
  EXPECT_EQ(Derived(1, "L m0 output>0\nF u0 m0 input<0\nK u0 input<0"),
            "L m0 output>0\nF u0 m0 input<0 ^0\nK u0 input<0 ^0\n");
}

TEST(DeriveAfter, WritersWaitForReadersAndWriters) {
  EXPECT_EQ(
      Derived(1, "L m0 output>0\nF u0 m0 input<0\nK u0 input<0\nL m1 output>0"),
      "L m0 output>0\nF u0 m0 input<0 ^0\nK u0 input<0 ^0\nL m1 output>0 "
      "^1,2\n");
  EXPECT_EQ(Derived(1, "L m0 output>0\nF u0 m0 output>0"),
            "L m0 output>0\nF u0 m0 output>0 ^0\n");
}

TEST(DeriveAfter, ReadersDoNotWaitForReaders) {
  EXPECT_EQ(Derived(1, "F u0 m0 input<0\nK u0 input<0\nL m0 input<0"),
            "F u0 m0 input<0\nK u0 input<0\nL m0 input<0\n");
}

TEST(DeriveAfter, WhatTheLaneSaysIsNotRepeated) {
  EXPECT_EQ(Derived(1, "F u0 m0 output>0\nF u1 m0 input<0 output>0"),
            "F u0 m0 output>0\nF u1 m0 input<0 output>0\n");
}

TEST(DeriveAfter, WhatFollowsIsNotRepeated) {
  EXPECT_EQ(
      Derived(2,
              "L m0 output>0\nF u0 m0 input<0 output>1\nK u0 input<0 saved<1"),
      "L m0 output>0\nF u0 m0 input<0 output>1 ^0\nK u0 input<0 saved<1 ^1\n");
}

// No instruction waits for one that uses other bytes of a buffer.
TEST(DeriveAfter, PartsOfABufferAreOrderedApart) {
  EXPECT_EQ(Derived(1,
                    "L m0 output>0:0:128\nK u0 output>0:128:128\n"
                    "F u0 m0 input<0:128:128\nF u1 m0 input<0:64:128\n"
                    "L m1 output>0:0:64"),
            "L m0 output>0:0:128\nK u0 output>0:128:128\n"
            "F u0 m0 input<0:128:128 ^1\nF u1 m0 input<0:64:128 ^0\n"
            "L m1 output>0:0:64\n");
  EXPECT_EQ(Derived(1,
                    "L m0 output>0:0:128\nF u0 m0 input<0:0:64\n"
                    "K u0 output>0"),
            "L m0 output>0:0:128\nF u0 m0 input<0:0:64 ^0\n"
            "K u0 output>0 ^1\n");
}

// Two buffers of one slot are ordered like one.
TEST(DeriveAfter, SlotReuseIsAnEdge) {
  Draft draft = DraftOf(2, "L m0 output>0\nF u0 m0 input<0\nL m1 output>1");
  draft.plan.mutable_roles(0)
      ->mutable_programs(0)
      ->mutable_buffers(1)
      ->set_slot(0);
  DeriveAfter(draft);
  EXPECT_EQ(ProgramText(draft.plan.roles(0).programs(0)),
            "L m0 output>0\nF u0 m0 input<0 ^0\nL m1 output>1 ^1\n");
}

// A use of a byte of another buffer's place waits for it, at whatever offsets
// the two lie; one that lies beside it does not.
TEST(DeriveAfter, SharedBytesAreAnEdge) {
  const auto derived = [](int64_t offset) {
    Draft draft = DraftOf(2, "L m0 output>0\nF u0 m0 input<0\nL m1 output>1");
    Buffer& later =
        *draft.plan.mutable_roles(0)->mutable_programs(0)->mutable_buffers(1);
    later.set_slot(0);
    later.set_offset(offset);
    DeriveAfter(draft);
    return ProgramText(draft.plan.roles(0).programs(0));
  };
  EXPECT_EQ(derived(255),
            "L m0 output>0\nF u0 m0 input<0 ^0\nL m1 output>1 ^1\n");
  EXPECT_EQ(derived(256), "L m0 output>0\nF u0 m0 input<0 ^0\nL m1 output>1\n");
}

// Of three that a large buffer takes the place of, it waits for each.
TEST(DeriveAfter, AWriterWaitsForAllWhoseBytesItTakes) {
  Draft draft = DraftOf(3, "L m0 output>0\nK u0 output>1\nF u0 m0 output>2");
  Program& program = *draft.plan.mutable_roles(0)->mutable_programs(0);
  for (Buffer& buffer : *program.mutable_buffers()) buffer.set_slot(0);
  program.mutable_buffers(1)->set_offset(512);
  program.mutable_buffers(2)->set_bytes(768);
  DeriveAfter(draft);
  EXPECT_EQ(ProgramText(program),
            "L m0 output>0\nK u0 output>1\nF u0 m0 output>2 ^0,1\n");
}

// Lanes are few, so an instruction never needs more edges than other lanes.
TEST(DeriveAfter, ProgramsStaySmall) {
  Plan plan = ExamplePlan(ExampleJob({.data = 4, .micro_batches = 8}));
  for (const Instruction& instruction :
       ProgramOf(plan, 0, Program::TRAIN).instructions()) {
    EXPECT_LE(instruction.after_size(), 2);
  }
}

}  // namespace
}  // namespace troupe
