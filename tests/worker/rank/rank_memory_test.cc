#include "worker/rank/rank_memory.h"

#include <filesystem>
#include <iterator>
#include <vector>

#include "gtest/gtest.h"
#include "storage/tier/allocator.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TierBudget DeviceBudget(int64_t bytes) {
  TierBudget budget;
  budget.set_tier(DEVICE);
  budget.set_bytes(bytes);
  return budget;
}

int AddSlot(Role& plan, const std::string& item, int64_t bytes) {
  Slot& slot = *plan.add_slots();
  slot.set_item(item);
  slot.set_tier(DEVICE);
  slot.set_bytes(bytes);
  return plan.slots_size() - 1;
}

void AddBuffer(Role& plan, Buffer::Kind kind, int unit, int slot) {
  if (plan.programs_size() == 0) plan.add_programs();
  Buffer& buffer = *plan.mutable_programs(0)->add_buffers();
  buffer.set_kind(kind);
  buffer.set_unit(unit);
  buffer.set_slot(slot);
  buffer.set_bytes(plan.slots(slot).bytes());
}

TEST(RankMemory, GradientsOfNeighboursAreOneRange) {
  Role plan;
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
  // In the order in which they were added.
  const auto& buffers = plan.programs(0).buffers();
  char* const unit_0 = memory->At(buffers[2], 1).memory();
  EXPECT_EQ(memory->At(buffers[3], 1).memory(), unit_0 + 64);
  EXPECT_EQ(memory->At(buffers[0], 1).memory(), unit_0 + 64 + 128);
  for (const Buffer& buffer : buffers) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->At(buffer, 1).memory()) % 64,
              0u);
  }
}

TEST(RankMemory, AVersionIsFoundAgainInLaterStepsUntilItsCopyIsReused) {
  Role plan;
  const int slot = AddSlot(plan, "parameters", 100);
  plan.mutable_slots(slot)->set_copies(3);
  AddBuffer(plan, Buffer::PARAMETERS, 0, slot);
  AddBuffer(plan, Buffer::PARAMETERS, 1, AddSlot(plan, "parameters", 64));
  HostAllocator allocator;
  // 3 x 128 bytes, and 64.
  const TierArenas arenas({DeviceBudget(448)}, allocator);
  const auto memory = RankMemory::Create(plan, arenas);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(arenas.used(), 448u);

  Buffer buffer = plan.programs(0).buffers(0);
  const std::vector<TierAddress> copies = memory->Copies(buffer);
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_TRUE(copies[1] == copies[0] + 128);
  EXPECT_TRUE(copies[2] == copies[1] + 128);
  // A pipeline is filled before step 1, and looks back from there.
  for (int64_t step = 0; step < 7; ++step) {
    buffer.set_copy_offset(0);
    char* const written = memory->At(buffer, step).memory();
    EXPECT_EQ(written, copies[step % 3].memory());
    for (int age = 1; age < 6; ++age) {
      buffer.set_copy_offset(-age);
      EXPECT_EQ(memory->At(buffer, step + age).memory(), written);
      EXPECT_EQ(memory->At(buffer, step).memory() == written, age % 3 == 0);
    }
  }
  const Buffer& of_unit_1 = plan.programs(0).buffers(1);
  EXPECT_EQ(memory->Copies(of_unit_1).size(), 1u);
  EXPECT_EQ(memory->At(of_unit_1, 5).memory(),
            memory->At(of_unit_1, 6).memory());
}

TEST(RankMemory, ABufferLiesInItsSlotWhereThePlanSays) {
  Role plan;
  AddSlot(plan, "activations", 64);
  const int slot = AddSlot(plan, "activations", 256);
  AddBuffer(plan, Buffer::ACTIVATION, 0, slot);
  AddBuffer(plan, Buffer::ACTIVATION, 1, slot);
  Buffer& behind = *plan.mutable_programs(0)->mutable_buffers(1);
  behind.set_bytes(64);
  behind.set_offset(192);
  HostAllocator allocator;
  const TierArenas arenas({DeviceBudget(320)}, allocator);
  const auto memory = RankMemory::Create(plan, arenas);
  ASSERT_TRUE(memory.ok()) << memory.status();
  char* const begin = memory->At(plan.programs(0).buffers(0), 1).memory();
  EXPECT_EQ(memory->At(behind, 1).memory(), begin + 192);
  ASSERT_EQ(memory->Copies(behind).size(), 1u);
  EXPECT_EQ(memory->Copies(behind)[0].memory(), begin + 192);
}

TEST(RankMemory, PastTheBudgetTheLineItemIsNamedAndNothingStays) {
  Role plan;
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
  Role plan;
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

// A file with room for all that rests there, and nothing of it in memory but
// checksums.
TEST(RankMemory, TheNvmeTierIsAFileOfTheRank) {
  Role plan;
  const int moments = AddSlot(plan, "optimizer_moments", 5000);
  const int parameters = AddSlot(plan, "parameters", 100);
  for (const int slot : {moments, parameters}) {
    plan.mutable_slots(slot)->set_tier(NVME);
  }
  AddBuffer(plan, Buffer::OPTIMIZER_STATE, 0, moments);
  AddBuffer(plan, Buffer::PARAMETERS, 0, parameters);
  const TempDir directory;
  HostAllocator allocator;
  TierBudget budget;
  budget.set_tier(NVME);
  budget.set_bytes(3 * 4096);
  TierBudget host;
  host.set_tier(HOST);
  host.set_bytes(4096);
  const TierArenas arenas(
      {budget, host},
      {.device = allocator,
       .host = allocator,
       .nvme = {.directory = directory.path(), .cluster = "c"}});
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(directory.path()),
                         std::filesystem::directory_iterator());
  };
  {
    const auto memory = RankMemory::Create(plan, arenas, {.job = "j"});
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(arenas.used(), 4u * 4096);
    EXPECT_EQ((*arenas.Find(HOST))->ledger().at("checksums").used, 4096u);
    EXPECT_EQ(files(), 1);
    const auto& buffers = plan.programs(0).buffers();
    EXPECT_EQ(memory->At(buffers[0], 1).offset(), 0u);
    EXPECT_EQ(memory->At(buffers[1], 1).offset(), 8192u);
    EXPECT_EQ(memory->spill()->bytes(), 3u * 4096);
    EXPECT_EQ(ReadText(memory->spill()->path())
                  .find("troupe spill file 1: cluster c, job j, rank 0"),
              0u);
  }
  EXPECT_EQ(files(), 0);
  EXPECT_EQ(arenas.used(), 0u);
}

TEST(RankMemory, ACopyIsNotWhereTheValueRests) {
  Role plan;
  const int copied = AddSlot(plan, "fetched", 64);
  const int rests = AddSlot(plan, "parameters", 64);
  AddBuffer(plan, Buffer::PARAMETERS, 0, copied);
  plan.mutable_programs(0)->mutable_buffers(0)->set_copy(1);
  AddBuffer(plan, Buffer::PARAMETERS, 0, rests);
  EXPECT_EQ(FindResident(plan, Buffer::PARAMETERS, 0)->slot(), rests);
}

}  // namespace
}  // namespace troupe
