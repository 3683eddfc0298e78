#include "proto/plan/memory.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

void AddSlot(Role& role, Tier tier, const std::string& item, int64_t bytes) {
  Slot& slot = *role.add_slots();
  slot.set_tier(tier);
  slot.set_item(item);
  slot.set_bytes(bytes);
}

TEST(Memory, SumsSlotsByTierAndItem) {
  Role role;
  AddSlot(role, DEVICE, "parameters", 100);
  AddSlot(role, DEVICE, "activations", 7);
  AddSlot(role, HOST, "parameters", 1000);
  AddSlot(role, DEVICE, "parameters", 20);
  const std::vector<MemoryItem> items = MemoryItems(role);
  ASSERT_EQ(items.size(), 3);
  EXPECT_EQ(items[0].item(), "parameters");
  EXPECT_EQ(items[0].tier(), DEVICE);
  EXPECT_EQ(items[0].bytes(), 120);
  EXPECT_EQ(items[1].bytes(), 7);
  EXPECT_EQ(items[2].tier(), HOST);
  EXPECT_EQ(items[2].bytes(), 1000);
  EXPECT_EQ(BytesIn(role, DEVICE), 127);
  EXPECT_EQ(BytesIn(role, HOST), 1000);
  EXPECT_EQ(BytesIn(role, NVME), 0);
}

TEST(Memory, WhatIsOnADiskHasChecksumsInTheHostTier) {
  Role role;
  AddSlot(role, HOST, "fetched", 4096);
  AddSlot(role, NVME, "optimizer_moments", 1024 * 4096);
  EXPECT_EQ(BytesIn(role, HOST), 2 * 4096);
  role.mutable_slots(1)->set_copies(3);
  const std::vector<MemoryItem> items = MemoryItems(role);
  ASSERT_EQ(items.size(), 3);
  EXPECT_EQ(items[2].item(), "checksums");
  EXPECT_EQ(items[2].tier(), HOST);
  EXPECT_EQ(items[2].bytes(), 3 * 4096);
  EXPECT_EQ(BytesIn(role, HOST), 4 * 4096);
  // Whole blocks, of the disk and of memory.
  EXPECT_EQ(ChecksumBytes(0), 0);
  EXPECT_EQ(ChecksumBytes(1), 4096);
  EXPECT_EQ(ChecksumBytes(1024 * 4096 + 1), 2 * 4096);
}

TEST(Memory, PredictedForARankAreItsOwn) {
  Plan plan;
  for (const int rank : {0, 1}) {
    RankPrediction& prediction = *plan.mutable_prediction()->add_ranks();
    prediction.set_rank(rank);
    MemoryItem& item = *prediction.add_memory();
    item.set_item(kKernelScratchItem);
    item.set_bytes(100 + rank);
  }
  EXPECT_EQ(PredictedBytes(plan, 1, kKernelScratchItem), 101);
  EXPECT_EQ(PredictedBytes(plan, 1, "parameters"), 0);
  EXPECT_EQ(PredictedBytes(plan, 2, kKernelScratchItem), 0);
}

TEST(Memory, BytesForPeople) {
  EXPECT_EQ(ReadableBytes(0), "0 B");
  EXPECT_EQ(ReadableBytes(1023), "1023 B");
  EXPECT_EQ(ReadableBytes(1536), "1.50 KiB");
  EXPECT_EQ(ReadableBytes(int64_t{42} << 20), "42.0 MiB");
  EXPECT_EQ(ReadableBytes(int64_t{7} << 30), "7.00 GiB");
  EXPECT_EQ(ReadableBytes(int64_t{300} << 40), "300 TiB");
}

TEST(Memory, TiersForPeople) {
  EXPECT_EQ(TierText(DEVICE), "device");
  EXPECT_EQ(TierText(NVME), "nvme");
}

}  // namespace
}  // namespace troupe
