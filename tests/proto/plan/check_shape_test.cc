#include "proto/plan/check_shape.h"

#include <limits>
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
    {"lane that is not there",
     [](Plan& p) { At(p, 1, "F u1 m0").set_lane(p.lanes_size()); },
     "F u1 m0: is on lane "},
    {"lane before the first", [](Plan& p) { At(p, 1, "F u1 m0").set_lane(-1); },
     "is on lane -1 of"},
    {"lane without a kind", [](Plan& p) { p.mutable_lanes(1)->clear_kind(); },
     "has no kind"},
    {"lanes of one name",
     [](Plan& p) { p.mutable_lanes(1)->set_name(p.lanes(0).name()); },
     "two lanes are named \"COMPUTE\""},
    {"plan without lanes", [](Plan& p) { p.clear_lanes(); },
     "L m0: is on lane 12 of 0"},
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
       other.add_spans()->set_axis("data");
       other.mutable_spans(0)->add_places(1);
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
       Instruction::Operand& more = *forward.add_operands();
       more = forward.operands(0);
       more.set_buffer(At(p, 1, "F u2 m0").operands(0).buffer());
     },
     "has two buffers for its INPUT"},
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
       p.mutable_roles(0)->mutable_slots(slot)->set_bytes(1);
     },
     "of 128 bytes is in slot"},
    {"buffer past its slot's end",
     [](Plan& p) {
       Buffer& buffer = *ProgramOf(p, 0, Program::TRAIN).mutable_buffers(0);
       buffer.set_offset(p.roles(0).slots(buffer.slot()).bytes() - 64);
     },
     ", from byte "},
    {"buffer before its slot",
     [](Plan& p) {
       ProgramOf(p, 0, Program::TRAIN).mutable_buffers(0)->set_offset(-64);
     },
     ", from byte -64 on"},
    {"buffer far behind its slot",
     [](Plan& p) {
       ProgramOf(p, 0, Program::TRAIN)
           .mutable_buffers(0)
           ->set_offset(std::numeric_limits<int64_t>::max());
     },
     ", from byte 9223372036854775807 on"},
    {"buffer off the cache lines",
     [](Plan& p) {
       Buffer& buffer = *ProgramOf(p, 0, Program::TRAIN).mutable_buffers(0);
       p.mutable_roles(0)->mutable_slots(buffer.slot())->set_bytes(1 << 20);
       buffer.set_offset(32);
     },
     "begins at byte 32 of slot"},
    {"program twice",
     [](Plan& p) {
       *p.mutable_roles(0)->add_programs() = p.roles(0).programs(0);
     },
     "two of this program"},
    {"group out of order",
     [](Plan& p) {
       p.mutable_groups(0)->mutable_spans(0)->add_places(1);
       p.mutable_groups(0)->mutable_spans(0)->add_places(0);
     },
     "want them ascending"},
    {"two groups of one name", [](Plan& p) { *p.add_groups() = p.groups(0); },
     "there are two groups data"},
    {"group of no axis",
     [](Plan& p) { p.mutable_groups(0)->mutable_spans(0)->set_axis("time"); },
     "group data spans axis time of the mesh pipeline 1 x data 2"},
    {"placement nowhere",
     [](Plan& p) { p.mutable_roles(0)->mutable_placements(0)->set_unit(9); },
     "there is no such unit"},
    {"a part that says nothing",
     [](Plan& p) { p.mutable_roles(0)->mutable_placements(0)->clear_parts(); },
     "unit 0 has 1 parts, and 0 that say with whom"},
    {"a rank without a role",
     [](Plan& p) {
       ProgramOf(p, 0, Program::TRAIN);
       p.mutable_roles()->RemoveLast();
     },
     "rank 1 has no role"},
    {"two roles of a rank", [](Plan& p) { *p.add_roles() = p.roles(0); },
     "the roles are of 4 ranks, and the mesh has 2"},
    {"a role of no place",
     [](Plan& p) { p.mutable_roles(0)->mutable_at(0)->set_place(3); },
     "role pipeline 3: there is no such place in pipeline 1 x data 2"},
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
