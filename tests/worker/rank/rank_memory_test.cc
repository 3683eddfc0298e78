#include "worker/rank/rank_memory.h"

#include "gtest/gtest.h"
#include "storage/tier/allocator.h"

namespace troupe {
namespace {

TierBudget DeviceBudget(int64_t bytes) {
  TierBudget budget;
  budget.set_tier(DEVICE);
  budget.set_bytes(bytes);
  return budget;
}

int AddSlot(RankPlan& plan, const std::string& item, int64_t bytes) {
  Slot& slot = *plan.add_slots();
  slot.set_item(item);
  slot.set_tier(DEVICE);
  slot.set_bytes(bytes);
  return plan.slots_size() - 1;
}

void AddBuffer(RankPlan& plan, Buffer::Kind kind, int unit, int slot) {
  if (plan.programs_size() == 0) plan.add_programs();
  Buffer& buffer = *plan.mutable_programs(0)->add_buffers();
  buffer.set_kind(kind);
  buffer.set_unit(unit);
  buffer.set_slot(slot);
  buffer.set_bytes(plan.slots(slot).bytes());
}

TEST(RankMemory, GradientsOfNeighboursAreOneRange) {
  RankPlan plan;
  // Slots in another order than units, and others in between.
  const int of_unit_2 = AddSlot(plan, "gradients", 100);
  const int parameters = AddSlot(plan, "parameters", 300);
  const int of_unit_0 = AddSlot(plan, "gradients", 64);
  const int of_unit_1 = AddSlot(plan, "gradients", 128);
  AddBuffer(plan, Buffer::PARAMETER_GRADIENTS, 2, of_unit_2);
  AddBuffer(plan, Buffer::PARAMETERS, 0, parameters);
  AddBuffer(plan, Buffer::PARAMETER_GRADIENTS, 0, of_unit_0);
  AddBuffer(plan, Buffer::PARAMETER_GRADIENTS, 1, of_unit_1);

  HostAllocator allocator;
  const TierArenas arenas({DeviceBudget(1 << 20)}, allocator);
  const auto memory = RankMemory::Create(plan, arenas);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->slot(of_unit_1), memory->slot(of_unit_0) + 64);
  EXPECT_EQ(memory->slot(of_unit_2), memory->slot(of_unit_1) + 128);
  for (int slot = 0; slot < 4; ++slot) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->slot(slot)) % 64, 0u);
  }
}

TEST(RankMemory, PastTheBudgetTheLineItemIsNamedAndNothingStays) {
  RankPlan plan;
  AddSlot(plan, "activations", 600);
  AddSlot(plan, "parameters", 600);
  HostAllocator allocator;
  const TierArenas arenas({DeviceBudget(1000)}, allocator);
  const absl::Status status = RankMemory::Create(plan, arenas).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("parameters"), absl::string_view::npos)
      << status;
  EXPECT_EQ(arenas.used(), 0u);
}

TEST(RankMemory, ResidentBuffersAreFoundInAnyProgram) {
  RankPlan plan;
  AddBuffer(plan, Buffer::PARAMETERS, 0, AddSlot(plan, "parameters", 8));
  Buffer& moments = *plan.add_programs()->add_buffers();
  moments.set_kind(Buffer::OPTIMIZER_STATE);
  moments.set_unit(4);
  Buffer& scalars = *plan.mutable_programs(1)->add_buffers();
  scalars.set_kind(Buffer::SCALARS);
  EXPECT_EQ(FindResident(plan, Buffer::OPTIMIZER_STATE, 4), &moments);
  EXPECT_EQ(FindResident(plan, Buffer::SCALARS, absl::nullopt), &scalars);
  EXPECT_EQ(FindResident(plan, Buffer::OPTIMIZER_STATE, 0), nullptr);
  EXPECT_EQ(FindResident(plan, Buffer::PARAMETERS, absl::nullopt), nullptr);
}

}  // namespace
}  // namespace troupe
