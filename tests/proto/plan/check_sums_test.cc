#include "proto/plan/check_sums.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/check_program.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

JobSpec Job() {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(5);
  return job;
}

// Blocks add to a sum of three elements of their own, and to one that they
// share.
Plan PlanWithAddends() {
  Draft draft = StartDraft(ResolveJob(Job()).value()).value();
  for (Unit& unit : *draft.plan.mutable_units()) {
    if (unit.kind() != Unit::BLOCK) continue;
    Unit::Addend& own = *unit.add_addends();
    own.set_sum("loads");
    own.set_elements(3);
    own.set_own(true);
    Unit::Addend& common = *unit.add_addends();
    common.set_sum("balance");
    common.set_elements(1);
  }
  RunPasses(draft);
  return draft.plan;
}

Instruction& Find(Plan& plan, Program::Kind kind, const char* text) {
  Program& program = ProgramOf(plan, 1, kind);
  return *program.mutable_instructions(IndexOf(program, text));
}
// The n-th of its operands that are SCALARS.
Instruction::Operand& TotalsOf(Instruction& instruction, int n = 0) {
  for (Instruction::Operand& operand : *instruction.mutable_operands()) {
    if (operand.part() == Instruction::TOTALS && n-- == 0) return operand;
  }
  ADD_FAILURE() << "no such operand";
  return *instruction.mutable_operands(0);
}
void DropTotals(Instruction& instruction) {
  auto& operands = *instruction.mutable_operands();
  for (int i = operands.size() - 1; i >= 0; --i) {
    if (operands[i].part() == Instruction::TOTALS) {
      operands.DeleteSubrange(i, 1);
    }
  }
}
Sum& Named(Plan& plan, const std::string& name) {
  for (Sum& sum : *plan.mutable_sums()) {
    if (sum.name() == name) return sum;
  }
  ADD_FAILURE() << "no sum " << name;
  return *plan.mutable_sums(0);
}

TEST(CheckSums, AcceptsCompiledPlans) {
  EXPECT_EQ(CheckSums(ExamplePlan(Job())), absl::OkStatus());
  EXPECT_EQ(CheckSums(ExamplePlan(ExampleJob({}))), absl::OkStatus());
  EXPECT_EQ(CheckPrograms(PlanWithAddends()), absl::OkStatus());
}

constexpr auto kTrain = Program::TRAIN;

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};
const Fault kFaults[] = {
    {"not declared", [](Plan& p) { p.mutable_sums()->RemoveLast(); },
     "which the plan lacks"},
    {"declared twice", [](Plan& p) { *p.add_sums() = p.sums(0); },
     "the sum \"loss\" is there twice"},
    {"of another size", [](Plan& p) { Named(p, "loads").set_elements(2); },
     "unit 1 adds 3 elements to the sum \"loads\" of unit 1, which has 2"},
    {"of no size", [](Plan& p) { Named(p, "balance").set_elements(0); },
     "the sum \"balance\" has 0 elements"},
    {"of no unit", [](Plan& p) { Named(p, "loads").set_unit(99); },
     "the sum \"loads\" of unit 99: there is no such unit"},
    {"of another unit", [](Plan& p) { Named(p, "loads").set_unit(0); },
     "unit 1 adds to the sum \"loads\" of unit 1, which the plan lacks"},
    {"added by others",
     [](Plan& p) { Named(p, "balance").set_added_by(Instruction::GRAD_NORM); },
     "nobody knows how GRAD_NORM adds to the sum \"balance\""},
    {"nobody adds",
     [](Plan& p) {
       Sum& sum = *p.add_sums();
       sum.set_name("more");
       sum.set_elements(1);
       sum.set_added_by(Instruction::FORWARD);
     },
     "no unit adds to the sum \"more\""},
    {"no flag", [](Plan& p) { Named(p, "save").set_name("saves"); },
     "a plan has the sum \"save\", of one element, added by REDUCE_SCALARS"},
    {"a flag that does not follow",
     [](Plan& p) { p.mutable_sums()->SwapElements(2, 4); },
     "the sum \"save\" does not follow the sum \"stop\""},
    {"no room",
     [](Plan& p) {
       for (Buffer& buffer : *ProgramOf(p, 1, kTrain).mutable_buffers()) {
         if (buffer.kind() == Buffer::SCALARS) buffer.set_bytes(40);
       }
     },
     "rank 1, TRAIN: SCALARS has 40 bytes, the plan's sums"},
    {"a loss that is not added",
     [](Plan& p) { DropTotals(Find(p, kTrain, "F u3 m1")); },
     "F u3 m1: uses bytes none of SCALARS; its sums are bytes 0 to 16"},
    {"a part of the loss",
     [](Plan& p) { TotalsOf(Find(p, kTrain, "F u3 m1")).set_bytes(8); },
     "uses bytes 0 to 8 of SCALARS; its sums are bytes 0 to 16"},
    {"the sum of another",
     [](Plan& p) {
       TotalsOf(Find(p, Program::VALIDATE, "F u2 m0")).set_offset(40);
     },
     "rank 1, VALIDATE: F u2 m0: uses bytes 40 to 72 of SCALARS; its "
     "sums are bytes 64 to 96"},
    {"who has none",
     [](Plan& p) {
       const Instruction::Operand operand =
           TotalsOf(Find(p, kTrain, "F u3 m0"));
       *Find(p, kTrain, "F u0 m0").add_operands() = operand;
     },
     "F u0 m0: uses bytes 0 to 16 of SCALARS; its sums are bytes none"},
    {"a loss that overwrites",
     [](Plan& p) {
       TotalsOf(Find(p, kTrain, "F u3 m0")).set_access(Instruction::WRITE);
     },
     "F u3 m0: does not add to what SCALARS holds"},
    {"a norm elsewhere",
     [](Plan& p) { TotalsOf(Find(p, kTrain, "N u1 g0")).set_offset(0); },
     "N u1 g0: uses bytes 0 to 8 of SCALARS; its sums are bytes 16 to 24"},
    {"clipped by another sum",
     [](Plan& p) { TotalsOf(Find(p, kTrain, "O u1")).set_offset(24); },
     "O u1: uses bytes 24 to 32 of SCALARS; its sums are bytes 16 to 24"},
    {"not clipped", [](Plan& p) { DropTotals(Find(p, kTrain, "O u1")); },
     "O u1: uses bytes none of SCALARS; its sums are bytes 16 to 24"},
    {"not all is reduced",
     [](Plan& p) { TotalsOf(Find(p, kTrain, "A g0")).set_bytes(40); },
     "A g0: uses bytes 0 to 40 of SCALARS; its sums are bytes 0 to"},
    {"nothing is reduced",
     [](Plan& p) {
       Program& validate = ProgramOf(p, 1, Program::VALIDATE);
       Remove(validate, IndexOf(validate, "A g0"));
     },
     "rank 1, VALIDATE: nothing sums what the ranks have added"},
    {"reduced twice",
     [](Plan& p) {
       Program& train = ProgramOf(p, 1, kTrain);
       const Instruction copy = train.instructions(IndexOf(train, "A g0"));
       *train.add_instructions() = copy;
     },
     "A g0: sums what is summed"},
    {"reduced too early",
     [](Plan& p) {
       Program& train = ProgramOf(p, 1, kTrain);
       train.mutable_instructions()->SwapElements(IndexOf(train, "A g0"),
                                                  IndexOf(train, "F u3 m1"));
     },
     "adds to a sum after the ranks have summed it"},
    {"reduced late, and never",
     [](Plan& p) { Find(p, kTrain, "A g0").set_ahead(-1); },
     "rank 1, TRAIN: sums steps 1 programs late, and REPORT does not sum"},
    {"reduced over some",
     [](Plan& p) {
       Group& group = *p.add_groups();
       group.set_name("some");
       Group::Span& span = *group.add_spans();
       span.set_axis("data");
       span.add_places(1);
       Find(p, kTrain, "A g0").set_group(p.groups_size() - 1);
     },
     "sums over group some, which has 1 of 2 ranks"},
};

TEST(CheckSums, NamesTheFault) {
  for (const Fault& fault : kFaults) {
    Plan plan = PlanWithAddends();
    fault.plant(plan);
    const absl::Status status = CheckSums(plan);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << fault.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message))
        << fault.name;
    EXPECT_FALSE(CheckPrograms(plan).ok()) << fault.name;
  }
}

// Rank 0 computes two steps ahead of those that are summed.
Plan PlanThatIsAhead() {
  JobSpec job = Job();
  job.mutable_parallelism()->set_pipeline(3);
  job.mutable_parallelism()->set_data(1);
  job.mutable_parallelism()->set_pipeline_schedule("pipedream");
  job.mutable_training()->set_gradient_clipping(0);
  job.mutable_training()->set_global_batch_size(
      job.training().micro_batch_size());
  Draft draft = StartDraft(ResolveJob(job).value()).value();
  for (Unit& unit : *draft.plan.mutable_units()) {
    Unit::Addend& addend = *unit.add_addends();
    addend.set_sum("all");
    addend.set_elements(1);
  }
  RunPasses(draft);
  return draft.plan;
}

// Of the first instruction of the kind.
const Buffer& SumsOf(const Program& program, Instruction::Kind kind) {
  for (const Instruction& instruction : program.instructions()) {
    if (instruction.kind() != kind) continue;
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (operand.part() != Instruction::TOTALS) continue;
      return program.buffers(operand.buffer());
    }
  }
  CHECK(false) << "nobody uses sums";
  return program.buffers(0);
}

TEST(CheckSums, EveryStepUnderWayHasACopy) {
  Plan plan = PlanThatIsAhead();
  EXPECT_EQ(CheckPrograms(plan), absl::OkStatus());
  const Program& train = ProgramOf(plan, 0, kTrain);
  const Buffer& ahead = SumsOf(train, Instruction::FORWARD);
  const Buffer& summed = SumsOf(train, Instruction::REDUCE_SCALARS);
  EXPECT_EQ(ahead.copy_offset(), 2);
  EXPECT_LT(summed.copy_offset(), 0);
  EXPECT_EQ(plan.roles(0).slots(ahead.slot()).copies(),
            ahead.copy_offset() - summed.copy_offset() + 1);
  // A validation adds where nothing is needed any more.
  const Program& validate = ProgramOf(plan, 0, Program::VALIDATE);
  EXPECT_EQ(SumsOf(validate, Instruction::FORWARD).copy_offset(),
            summed.copy_offset());
}

TEST(CheckSums, NamesTheCopyThatIsWrong) {
  const auto expect = [](const Plan& plan, const char* message) {
    const absl::Status status = CheckSums(plan);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  const auto move = [](Plan& plan, Program::Kind kind) {
    for (Buffer& buffer : *ProgramOf(plan, 0, kind).mutable_buffers()) {
      if (buffer.kind() != Buffer::SCALARS) continue;
      buffer.set_copy_offset(buffer.copy_offset() + 1);
    }
  };
  Plan plan = PlanThatIsAhead();
  move(plan, Program::FILL);
  expect(plan,
         "rank 0, FILL: F u0 m0 +1: uses SCALARS of the step 2 after its own, "
         "want those of the step 1 after its own");
  plan = PlanThatIsAhead();
  move(plan, Program::VALIDATE);
  expect(plan,
         "rank 0, VALIDATE: F u0 m0: uses SCALARS of its step, want those of "
         "the step 1 before its own");
  plan = PlanThatIsAhead();
  const int index =
      SumsOf(ProgramOf(plan, 0, kTrain), Instruction::FORWARD).slot();
  Slot& slot = *plan.mutable_roles(0)->mutable_slots(index);
  slot.set_copies(slot.copies() - 1);
  expect(plan, "uses SCALARS of one of ");
}

}  // namespace
}  // namespace troupe
