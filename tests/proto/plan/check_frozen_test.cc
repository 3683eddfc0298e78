#include "proto/plan/check_frozen.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_at_rest.h"
#include "proto/plan/check_work.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// On two replicas: of both blocks the biases are frozen, of the first all.
JobSpec Job() {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  job.mutable_training()->add_freeze("*.h.0.*");
  job.mutable_training()->add_freeze("*.h.?.*bias");
  return job;
}

TEST(CheckFrozen, AcceptsACompiledPlan) {
  const Plan plan = ExamplePlan(Job());
  EXPECT_TRUE(CheckFrozen(plan).ok()) << CheckFrozen(plan);
  EXPECT_TRUE(CheckWork(plan).ok());
  const Plan all = ExamplePlan(ExampleJob({}));
  EXPECT_TRUE(CheckFrozen(all).ok());
}

constexpr int kFrozen = 1;  // units
constexpr int kPartly = 2;

TensorSpec& Output(Plan& plan, int unit) {
  for (TensorSpec& tensor :
       *plan.mutable_tables(plan.units(unit).table())->mutable_tensors()) {
    if (tensor.home() == TensorSpec::OUTPUT) return tensor;
  }
  ADD_FAILURE() << "no output";
  return *plan.mutable_tables(0)->mutable_tensors(0);
}

Instruction& Add(Plan& plan, Instruction::Kind kind, int unit, int part) {
  Program& train = ProgramOf(plan, 0, Program::TRAIN);
  Instruction& instruction = *train.add_instructions();
  instruction.set_kind(kind);
  instruction.set_unit(unit);
  instruction.set_part(part);
  return instruction;
}

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  absl::Status (*check)(const Plan& plan);
  const char* message;
};
const Fault kFaults[] = {
    {"trains what is frozen",
     [](Plan& p) {
       p.mutable_units(kFrozen)->mutable_parameters(0)->set_frozen(false);
     },
     CheckFrozen,
     "is trained, and training.freeze and training.lora say "
     "otherwise"},
    {"freezes what is trained",
     [](Plan& p) { p.mutable_job()->mutable_training()->clear_freeze(); },
     CheckFrozen,
     "is frozen, and training.freeze and training.lora say "
     "otherwise"},
    {"a part that says otherwise",
     [](Plan& p) {
       p.mutable_units(kFrozen)->mutable_parts(0)->set_frozen(false);
     },
     CheckFrozen, "is frozen, but not its part 0"},
    {"a frozen part first",
     [](Plan& p) {
       p.mutable_units(kPartly)->mutable_parts()->SwapElements(0, 1);
     },
     CheckFrozen, "but not its part 0"},
    {"an op that trains what is frozen",
     [](Plan& p) {
       for (Op& op :
            *p.mutable_tables(p.units(kPartly).table())->mutable_ops()) {
         op.clear_frozen_parameters();
       }
     },
     CheckFrozen, "as if it were trained"},
    {"a gradient that is left out",
     [](Plan& p) { Output(p, kPartly).set_no_gradient(true); }, CheckFrozen,
     "has no gradient, though parameters before it are trained"},
    {"a sum over ranks of what is frozen",
     [](Plan& p) {
       for (Role& role : *p.mutable_roles()) {
         for (Placement& placement : *role.mutable_placements()) {
           if (placement.unit() != kPartly) continue;
           placement.mutable_parts(1)->set_summed(placement.parts(0).summed());
         }
       }
     },
     CheckWork, "part 1 of unit 2 is frozen, and ranks sum its gradients"},
    {"a REDUCE_GRADS of what is frozen",
     [](Plan& p) {
       Add(p, Instruction::REDUCE_GRADS, kPartly, 1)
           .set_group(p.roles(0).placements(kPartly).parts(0).summed());
     },
     CheckWork, "unit 2 has 1 trained parts"},
    {"a norm of what is frozen",
     [](Plan& p) {
       Instruction& norm = Add(p, Instruction::GRAD_NORM, kFrozen, 0);
       norm.set_group(p.roles(0).placements(kFrozen).parts(0).shared());
     },
     CheckWork, "GRAD_NORM of unit 1 is there 1 times"},
    {"a STEP of what is frozen",
     [](Plan& p) { Add(p, Instruction::STEP, kFrozen, 0); }, CheckWork,
     "STEP of unit 1 is there 1 times"},
    {"a part that is dealt, and all of which is summed",
     [](Plan& p) {
       Placement::Part& part =
           *p.mutable_roles(0)->mutable_placements(kPartly)->mutable_parts(0);
       part.set_dealt(part.summed());
     },
     CheckWork, "but rank 0 sums its gradients over ranks "},
    {"gradients of what is frozen",
     [](Plan& p) {
       Program& train = ProgramOf(p, 0, Program::TRAIN);
       for (Buffer& buffer : *train.mutable_buffers()) {
         if (buffer.kind() != Buffer::PARAMETER_GRADIENTS) continue;
         buffer.set_bytes(4 * p.units(buffer.unit()).flat_elements());
       }
     },
     CheckAtRest, "PARAMETER_GRADIENTS of unit 2 has"},
};

TEST(CheckFrozen, RefusesPlantedFaults) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    Plan plan = ExamplePlan(Job());
    fault.plant(plan);
    const absl::Status status = fault.check(plan);
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message));
  }
}

}  // namespace
}  // namespace troupe
