#include "scheduler/passes/assign_slots.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/roles.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planned_lanes.h"
#include "tests/scheduler/synthetic_job.h"

namespace troupe {
namespace {

int64_t Bytes(const Plan& plan, const std::string& item, int role = 0) {
  int64_t bytes = 0;
  for (const Slot& slot : plan.roles(role).slots()) {
    if (slot.item() == item) bytes += slot.bytes() * CopiesOf(slot);
  }
  return bytes;
}

// What is carried lies in the same place in every step, and the places of those
// that live in turns do not come round in one.
double MostOver(const Pipeline& pipeline) {
  return pipeline.asynchronous ? 1.6 : 1.15;
}

TEST(AssignSlots, ActivationsOfOneMicroBatchAtATime) {
  for (int blocks = 1; blocks <= 5; ++blocks) {
    const Plan one = ExamplePlan(ExampleJob({.blocks = blocks}));
    for (int m = 2; m <= 6; ++m) {
      const Plan more =
          ExamplePlan(ExampleJob({.micro_batches = m, .blocks = blocks}));
      EXPECT_EQ(Bytes(more, "activations"), Bytes(one, "activations"))
          << blocks << " blocks, " << m << " micro-batches";
    }
  }
}

// What must be there together: all stashes and activations when backward
// starts, then the gradient and the weight stash of one unit at a time.
TEST(AssignSlots, ActivationsAreNearTheirLeast) {
  for (int blocks = 1; blocks <= 6; ++blocks) {
    const Plan plan = ExamplePlan(ExampleJob({.blocks = blocks}));
    int64_t least = 0;
    for (const Unit& unit : plan.units()) {
      least += unit.stash_bytes() + unit.activation_bytes();
    }
    int64_t one_unit = 0;
    for (const Unit& unit : plan.units()) {
      one_unit = std::max(
          one_unit, unit.weight_stash_bytes() + 2 * unit.activation_bytes());
    }
    EXPECT_GE(Bytes(plan, "activations"), least);
    EXPECT_LE(Bytes(plan, "activations"), least + one_unit) << blocks;
  }
}

TEST(AssignSlots, OnePlaceHoldsEveryBlocksWeightStash) {
  Plan plan = ExamplePlan(ExampleJob({.micro_batches = 3, .blocks = 5}));
  std::set<std::pair<int, int64_t>> places;  // slot and offset
  for (const Buffer& buffer : ProgramOf(plan, 0, Program::TRAIN).buffers()) {
    const bool block =
        buffer.has_unit() && plan.units(buffer.unit()).kind() == Unit::BLOCK;
    if (buffer.kind() == Buffer::WEIGHT_STASH && block) {
      places.insert({buffer.slot(), buffer.offset()});
    }
  }
  EXPECT_EQ(places.size(), 1);
}

// Hardly any byte is there for nobody, however a schedule mixes lives and
// however sizes mix in a unit.
TEST(AssignSlots, ActivationsTakeLittleMoreThanIsInUseAtOnce) {
  for (const Pipeline& pipeline : Pipelines()) {
    for (const int tensor : {1, 2}) {
      JobSpec job = ExampleJob({.micro_batches = 12, .blocks = 14});
      ParallelismSpec& parallelism = *job.mutable_parallelism();
      parallelism.set_pipeline(4);
      parallelism.set_tensor(tensor);
      parallelism.set_pipeline_schedule(std::string(pipeline.name));
      const Draft declared = ExampleDraft(job, "declare buffers");
      const Plan plan = ExamplePlan(job);
      ASSERT_EQ(plan.roles_size(), declared.plan.roles_size());
      for (int r = 0; r < plan.roles_size(); ++r) {
        const int64_t least =
            LeastBytes(declared.plan, declared.plan.roles(r), "activations");
        const int64_t bytes = Bytes(plan, "activations", r);
        EXPECT_GE(bytes, least);
        EXPECT_LE(bytes, MostOver(pipeline) * least)
            << pipeline.name << " on " << RoleText(plan.roles(r));
      }
    }
  }
}

TEST(AssignSlots, GradientsOfNeighboursAreNeighbours) {
  Plan plan = ExamplePlan(ExampleJob({.data = 2, .blocks = 4}));
  std::map<int, int> slot_of_unit;
  for (const Buffer& buffer : ProgramOf(plan, 1, Program::TRAIN).buffers()) {
    if (buffer.kind() == Buffer::PARAMETER_GRADIENTS) {
      slot_of_unit[buffer.unit()] = buffer.slot();
    }
  }
  ASSERT_EQ(slot_of_unit.size(), 6);
  for (const auto& [unit, slot] : slot_of_unit) {
    EXPECT_EQ(slot, slot_of_unit[0] + unit);
    EXPECT_EQ(plan.roles(RoleIndexOf(plan, 1)).slots(slot).item(), "gradients");
  }
}

TEST(AssignSlots, SlotsAreWholeCacheLines) {
  JobSpec job = ExampleJob({.micro_batch_size = 1});
  job.mutable_training()->set_sequence_length(3);
  const Plan plan = ExamplePlan(job);
  for (const Slot& slot : plan.roles(0).slots()) {
    EXPECT_GT(slot.bytes(), 0);
    EXPECT_EQ(slot.bytes() % 64, 0) << slot.item();
  }
}

TEST(AssignSlots, ProgramsShareResidentSlotsAndScratch) {
  JobSpec job = ExampleJob({.micro_batches = 2});
  const int slots = ExamplePlan(job).roles(0).slots_size();
  job.mutable_checkpoint()->set_directory("checkpoints");
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(3);
  Plan plan = ExamplePlan(job);
  EXPECT_EQ(plan.roles(0).slots_size(), slots);
  std::map<std::pair<Buffer::Kind, int>, std::set<int>> resident;
  for (const Program& program : plan.roles(0).programs()) {
    for (const Buffer& buffer : program.buffers()) {
      if (!IsResident(buffer.kind())) continue;
      resident[{buffer.kind(), buffer.unit()}].insert(buffer.slot());
    }
  }
  for (const auto& [name, slots_of_it] : resident) {
    EXPECT_EQ(slots_of_it.size(), 1) << Buffer::Kind_Name(name.first);
  }
}

// What a step leaves for the next is back in its place at the end, and lends it
// to others meanwhile.
TEST(AssignSlots, CarriedActivationsLendTheirPlaces) {
  constexpr int kRanks = 4;
  const Plan plan = ExamplePlan(SyntheticJob(
      {.pipeline = kRanks, .schedule = "pipedream", .micro_batches = 12}));
  for (const Role& role : plan.roles()) {
    using Place = std::pair<int, int64_t>;  // slot and offset
    std::set<Place> carried;
    std::set<Place> lent;
    const Program& train = *FindProgram(role, Program::TRAIN);
    for (const Buffer& buffer : train.buffers()) {
      if (buffer.carried()) carried.insert({buffer.slot(), buffer.offset()});
    }
    for (const Buffer& buffer : train.buffers()) {
      const Place place = {buffer.slot(), buffer.offset()};
      if (!buffer.carried() && carried.count(place) > 0) lent.insert(place);
    }
    EXPECT_GE(carried.size(), kRanks - 1 - FirstRankOf(plan.mesh(), role));
    EXPECT_EQ(lent, carried) << RoleText(role);
  }
}

// A rank computes on while it sends what it has computed, and room for what it
// receives is there before the step ends that runs when it comes.
TEST(AssignSlots, TransfersOverlapWithTheStepNextToThem) {
  JobSpec job = ExampleJob({.micro_batches = 6});
  job.mutable_parallelism()->set_pipeline(2);
  const Plan plan = ExamplePlan(job);
  for (const Role& role : plan.roles()) {
    const Program& train = *FindProgram(role, Program::TRAIN);
    const Instruction* step = nullptr;  // the last of a unit
    std::set<int> of_last_step;
    int sent = -1;
    for (int i = 0; i < train.instructions_size(); ++i) {
      const Instruction& instruction = train.instructions(i);
      const std::set<int> after(instruction.after().begin(),
                                instruction.after().end());
      if (instruction.kind() == Instruction::SEND) sent = i;
      if (instruction.kind() == Instruction::RECV) {
        for (const int earlier : after) {
          EXPECT_EQ(of_last_step.count(earlier), 0) << ProgramText(train);
        }
      }
      if (instruction.lane() != LaneNamed("COMPUTE")) continue;
      const bool same_step = step != nullptr &&
                             step->micro_batch() == instruction.micro_batch() &&
                             (step->kind() == Instruction::FORWARD) ==
                                 (instruction.kind() == Instruction::FORWARD);
      if (!same_step) {
        of_last_step.clear();
        EXPECT_EQ(after.count(sent), 0) << ProgramText(train);
        sent = -1;
      }
      of_last_step.insert(i);
      step = &instruction;
    }
  }
}

}  // namespace
}  // namespace troupe
