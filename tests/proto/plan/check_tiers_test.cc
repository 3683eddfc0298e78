#include "proto/plan/check_tiers.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/buffer_kind.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Of one rank; states on a disk, stepped on the host as gradients come.
Plan TieredPlan() {
  JobSpec job = ExampleJob({.blocks = 1});
  job.mutable_training()->set_gradient_clipping(0);
  job.mutable_memory()->set_optimizer("nvme");
  return ExamplePlan(job);
}

Program& Train(Plan& plan) { return ProgramOf(plan, 0, Program::TRAIN); }

const Buffer& BufferOf(const Program& program, const Instruction& instruction,
                       int operand) {
  return program.buffers(instruction.operands(operand).buffer());
}

// The index of the first move that brings a value of this kind to the tier.
int MoveOf(const Program& program, Buffer::Kind kind, Tier to) {
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& move = program.instructions(i);
    if (move.kind() != Instruction::FETCH &&
        move.kind() != Instruction::EVICT) {
      continue;
    }
    const Buffer& target = BufferOf(program, move, 1);
    if (target.kind() == kind && TierOf(target) == to) return i;
  }
  CHECK(false) << "nothing moves " << Buffer::Kind_Name(kind) << " there";
  return -1;
}

Instruction& Fetch(Plan& plan) {
  Program& train = Train(plan);
  return *train.mutable_instructions(
      MoveOf(train, Buffer::OPTIMIZER_STATE, HOST));
}

Instruction& Evict(Plan& plan) {
  Program& train = Train(plan);
  return *train.mutable_instructions(
      MoveOf(train, Buffer::OPTIMIZER_STATE, NVME));
}

Instruction& FetchOfGradients(Plan& plan) {
  Program& train = Train(plan);
  return *train.mutable_instructions(
      MoveOf(train, Buffer::PARAMETER_GRADIENTS, HOST));
}

Buffer& TargetOf(Plan& plan, const Instruction& move) {
  return *Train(plan).mutable_buffers(move.operands(1).buffer());
}

TEST(CheckTiers, AcceptsCompiledPlans) {
  EXPECT_EQ(CheckTiers(ExamplePlan(ExampleJob({.data = 2}))), absl::OkStatus());
  EXPECT_EQ(CheckTiers(TieredPlan()), absl::OkStatus());
}

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};

const Fault kFaults[] = {
    {"a slot in another tier",
     [](Plan& p) {
       const Buffer& copy = TargetOf(p, Fetch(p));
       p.mutable_roles(0)->mutable_slots(copy.slot())->set_tier(DEVICE);
     },
     "in host (a copy) has a slot in device"},
    {"an operand where it rests",
     [](Plan& p) {
       Program& train = Train(p);
       const int rests = Fetch(p).operands(0).buffer();
       for (Instruction::Operand& operand :
            *train.mutable_instructions(IndexOf(train, "O u2"))
                 ->mutable_operands()) {
         if (operand.part() == Instruction::MOMENTS) operand.set_buffer(rests);
       }
     },
     "O u2: uses OPTIMIZER_STATE u2 in nvme, and lane OPTIMIZER works in host"},
    {"a copy on the device's lane",
     [](Plan& p) {
       Program& train = Train(p);
       Instruction& pass =
           *train.mutable_instructions(IndexOf(train, "W u2 m0"));
       for (Instruction::Operand& operand : *pass.mutable_operands()) {
         if (operand.part() != Instruction::WEIGHT_GRADIENTS) continue;
         operand.set_buffer(FetchOfGradients(p).operands(1).buffer());
       }
     },
     "W u2 m0: uses PARAMETER_GRADIENTS u2 in host (a copy), and lane COMPUTE "
     "works in device"},
    {"a move that adds",
     [](Plan& p) {
       Fetch(p).mutable_operands(1)->set_access(Instruction::ADD);
     },
     "P u2: does not read what it moves FROM, and write TO"},
    {"a move of a part",
     [](Plan& p) { Fetch(p).mutable_operands(1)->set_bytes(64); },
     "these are not all of one value and a copy of it"},
    {"a move of another unit", [](Plan& p) { Fetch(p).set_unit(1); },
     "these are not all of one value and a copy of it"},
    {"a move of something else",
     [](Plan& p) { TargetOf(p, Fetch(p)).set_kind(Buffer::MASTER_WEIGHTS); },
     "these are not all of one value and a copy of it"},
    {"a move of a slice of what is whole",
     [](Plan& p) { TargetOf(p, Fetch(p)).set_slice(true); },
     "these are not all of one value and a copy of it"},
    {"a fetch to where something rests",
     [](Plan& p) { Evict(p).set_kind(Instruction::FETCH); },
     "these are not all of one value and a copy of it"},
    {"a move past a tier",
     [](Plan& p) {
       Buffer& copy = TargetOf(p, Fetch(p));
       copy.set_tier(DEVICE);
       p.mutable_roles(0)->mutable_slots(copy.slot())->set_tier(DEVICE);
       for (Buffer& buffer : *Train(p).mutable_buffers()) {
         if (buffer.slot() == copy.slot()) buffer.set_tier(DEVICE);
       }
     },
     "which is no neighbour"},
    {"a disk's move on a device's lane",
     [](Plan& p) { Fetch(p).set_lane(FetchOfGradients(p).lane()); },
     "is on lane TO_HOST, where nothing moves between nvme and host"},
    {"a device's move on a disk's lane",
     [](Plan& p) { FetchOfGradients(p).set_lane(Fetch(p).lane()); },
     "is on lane NVME_READS, where nothing moves between device and host"},
    {"a copy of nothing",
     [](Plan& p) {
       Buffer& copy = *Train(p).add_buffers();
       copy = TargetOf(p, Fetch(p));
       copy.set_copy(9);
     },
     "no FETCH or EVICT says of what"},
    {"gradients that are begun twice",
     [](Plan& p) {
       Program& train = Train(p);
       for (const char* const pass : {"W u0 m0", "W u2 m0"}) {
         for (Instruction::Operand& operand :
              *train.mutable_instructions(IndexOf(train, pass))
                   ->mutable_operands()) {
           if (operand.part() == Instruction::WEIGHT_GRADIENTS) {
             operand.set_access(Instruction::WRITE);
           }
         }
       }
     },
     "W u0 m0: writes PARAMETER_GRADIENTS u0 in device anew, to which W u2 m0 "
     "has added"},
    {"gradients that are never begun",
     [](Plan& p) {
       Program& train = Train(p);
       for (Instruction::Operand& operand :
            *train.mutable_instructions(IndexOf(train, "W u1 m0"))
                 ->mutable_operands()) {
         if (operand.part() == Instruction::WEIGHT_GRADIENTS) {
           operand.set_access(Instruction::ADD);
         }
       }
     },
     "O u1: leaves PARAMETER_GRADIENTS u1 in host (a copy) as it is, and the "
     "next step adds to that"},
    {"a change that stays in a copy",
     [](Plan& p) {
       Remove(Train(p), MoveOf(Train(p), Buffer::OPTIMIZER_STATE, NVME));
     },
     "O u2: changes OPTIMIZER_STATE u2 in host (a copy), and no EVICT takes "
     "that to OPTIMIZER_STATE u2 in nvme"},
};

TEST(CheckTiers, NamesTheFault) {
  for (const Fault& fault : kFaults) {
    Plan plan = TieredPlan();
    fault.plant(plan);
    const absl::Status status = CheckTiers(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message))
        << fault.name;
  }
}

// Exchanges two neighbours of the program.
void Exchange(Program& program, int index) {
  program.mutable_instructions()->SwapElements(index, index + 1);
}

TEST(CheckTiers, ACopyIsUsedBehindItsFetch) {
  Plan plan = TieredPlan();
  Program& train = Train(plan);
  const int step = IndexOf(train, "O u2");
  ASSERT_EQ(train.instructions(step - 1).kind(), Instruction::FETCH);
  Exchange(train, step - 1);
  EXPECT_THAT(std::string(CheckTiers(plan).message()),
              HasSubstr("O u2: uses OPTIMIZER_STATE u2 in host (a copy) before "
                        "its FETCH"));
}

// The gradients are fetched before the pass that makes them.
TEST(CheckTiers, ACopyIsNoOlderThanWhatRests) {
  Plan plan = TieredPlan();
  Program& train = Train(plan);
  const int pass = IndexOf(train, "W u2 m0");
  for (int i = MoveOf(train, Buffer::PARAMETER_GRADIENTS, HOST); i > pass;
       --i) {
    Exchange(train, i - 1);
  }
  EXPECT_THAT(std::string(CheckTiers(plan).message()),
              HasSubstr("O u2: uses PARAMETER_GRADIENTS u2 in host (a copy), "
                        "which lacks what W u2 m0 left in PARAMETER_GRADIENTS "
                        "u2 in device"));
}

// A unit's new weights are read again before they are back.
TEST(CheckTiers, WhatRestsIsNotUsedWhileACopyIsNewer) {
  Plan plan = TieredPlan();
  Program& train = Train(plan);
  Instruction again = train.instructions(IndexOf(train, "F u2 m0"));
  const int evict = MoveOf(train, Buffer::PARAMETERS, DEVICE);
  const int step = IndexOf(train, "O u2");
  ASSERT_GT(evict, step);
  *train.mutable_instructions(evict) = again;
  EXPECT_THAT(std::string(CheckTiers(plan).message()),
              HasSubstr("F u2 m0: uses PARAMETERS u2 in device, which lacks "
                        "what O u2 left in PARAMETERS u2 in host (a copy)"));
}

}  // namespace
}  // namespace troupe
