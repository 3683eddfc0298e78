#include "proto/plan/check_shape.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};

Instruction& At(Plan& plan, int rank, const char* text) {
  Program& program = ProgramOf(plan, rank, Program::TRAIN);
  return *program.mutable_instructions(IndexOf(program, text));
}

TEST(CheckShape, AcceptsACompiledPlan) {
  EXPECT_TRUE(CheckShape(ExamplePlan(ExampleJob({.data = 2}))).ok());
}

const Fault kFaults[] = {
    {"no kind", [](Plan& p) { At(p, 0, "L m0").clear_kind(); },
     "rank 0, TRAIN: instruction 0 has no kind"},
    {"no lane", [](Plan& p) { At(p, 1, "F u1 m0").clear_lane(); },
     "has no lane"},
    {"no unit", [](Plan& p) { At(p, 0, "W u1 m0").clear_unit(); },
     "has no unit"},
    {"unit elsewhere", [](Plan& p) { At(p, 0, "W u1 m0").set_unit(9); },
     "unit 9 is not on this rank"},
    {"micro-batch too many",
     [](Plan& p) { At(p, 0, "F u1 m0").set_micro_batch(1); },
     "there are 1 micro-batches"},
    {"no micro-batch", [](Plan& p) { At(p, 0, "F u1 m0").clear_micro_batch(); },
     "has no micro-batch"},
    {"no group", [](Plan& p) { At(p, 0, "A g0").set_group(7); },
     "has no group"},
    {"stranger in group",
     [](Plan& p) {
       Group& other = *p.add_groups();
       other.set_name("other");
       other.add_ranks(1);
       At(p, 0, "A g0").set_group(1);
     },
     "this rank is not in group other"},
    {"buffer out of range",
     [](Plan& p) { At(p, 1, "F u1 m0").mutable_operands(0)->set_buffer(99); },
     "buffer 99 of"},
    {"operand without a part",
     [](Plan& p) { At(p, 1, "F u1 m0").mutable_operands(0)->clear_part(); },
     "cannot be its PART_UNSPECIFIED"},
    {"operand of another kind",
     [](Plan& p) {
       At(p, 1, "F u1 m0").mutable_operands(0)->set_part(Instruction::SAVED);
     },
     "cannot be its SAVED"},
    {"the same part twice",
     [](Plan& p) {
       Instruction& forward = At(p, 1, "F u1 m0");
       *forward.add_operands() = forward.operands(0);
     },
     "has two of INPUT"},
    {"waits for itself",
     [](Plan& p) {
       Program& program = ProgramOf(p, 0, Program::TRAIN);
       program.mutable_instructions(2)->add_after(2);
     },
     "waits for 2, which is not earlier"},
    {"slot out of range",
     [](Plan& p) {
       ProgramOf(p, 0, Program::TRAIN).mutable_buffers(0)->set_slot(99);
     },
     "is in slot 99 of"},
    {"slot too small",
     [](Plan& p) {
       const int slot = ProgramOf(p, 0, Program::TRAIN).buffers(0).slot();
       p.mutable_ranks(0)->mutable_slots(slot)->set_bytes(1);
     },
     "of 128 bytes is in slot"},
    {"program twice",
     [](Plan& p) {
       *p.mutable_ranks(0)->add_programs() = p.ranks(0).programs(0);
     },
     "two of this program"},
    {"group out of order",
     [](Plan& p) { p.mutable_groups(0)->set_ranks(0, 1); }, "ascending"},
    {"placement nowhere", [](Plan& p) { p.mutable_placements(0)->set_rank(5); },
     "there is no such place"},
    {"rank elsewhere", [](Plan& p) { p.mutable_ranks(0)->set_rank(1); },
     "the plan of rank 1 stands at 0"},
};

TEST(CheckShape, NamesTheFault) {
  for (const Fault& fault : kFaults) {
    Plan plan = ExamplePlan(ExampleJob({.data = 2}));
    fault.plant(plan);
    const absl::Status status = CheckShape(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message))
        << fault.name;
  }
}

}  // namespace
}  // namespace troupe
