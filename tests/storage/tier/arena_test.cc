#include "storage/tier/arena.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

// Counts what is out; can refuse.
class CountingAllocator final : public TierAllocator {
 public:
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    if (refuse) return absl::ResourceExhaustedError("the device is full");
    out += bytes;
    return host_.Allocate(bytes);
  }
  void Free(void* data, size_t bytes) override {
    out -= bytes;
    host_.Free(data, bytes);
  }
  std::atomic<size_t> out = 0;
  bool refuse = false;

 private:
  HostAllocator host_;
};

ArenaBlock Take(Arena& arena, absl::string_view item, size_t bytes) {
  absl::StatusOr<ArenaBlock> block = arena.Allocate(item, bytes);
  CHECK(block.ok()) << block.status().ToString();
  return *std::move(block);
}

TEST(Arena, ChargesLineItemsAndGivesBack) {
  CountingAllocator allocator;
  Arena arena("host", 1000, allocator);
  {
    ArenaBlock a = Take(arena, "parameters", 600);
    ArenaBlock b = Take(arena, "gradients", 300);
    EXPECT_EQ(a.bytes(), 600u);
    EXPECT_EQ(arena.used(), 900u);
    a.Release();
    EXPECT_EQ(a.data(), nullptr);
    ArenaBlock c = Take(arena, "gradients", 100);
    EXPECT_EQ(arena.used(), 400u);
    EXPECT_EQ(arena.ledger().at("gradients").used, 400u);
  }
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_EQ(arena.peak(), 900u);
  EXPECT_EQ(arena.ledger().at("parameters").peak, 600u);
  EXPECT_EQ(allocator.out, 0u);
}

TEST(Arena, PastTheBudgetSaysWhatFillsIt) {
  HostAllocator allocator;
  Arena arena("device", 10 << 20, allocator);
  const ArenaBlock small = Take(arena, "buffers", 1 << 20);
  const ArenaBlock large = Take(arena, "parameters", 6 << 20);
  EXPECT_TRUE(Fails(arena.Allocate("gradients", 4 << 20).status(),
                    absl::StatusCode::kResourceExhausted,
                    {"tier device: gradients needs 4.0 MiB, but 7.0 MiB of "
                     "the 10.0 MiB budget are used (parameters 6.0 MiB, "
                     "buffers 1.0 MiB); 1.0 MiB short"}));
  EXPECT_EQ(arena.used(), 7u << 20);
  EXPECT_EQ(arena.ledger().count("gradients"), 0u);
  // What is left is there to the last byte.
  EXPECT_TRUE(arena.Allocate("gradients", 3 << 20).ok());
}

TEST(Arena, NoSizeOverflowsTheBudget) {
  HostAllocator allocator;
  Arena arena("host", 100, allocator);
  const ArenaBlock one = Take(arena, "x", 1);
  EXPECT_FALSE(arena.Allocate("x", SIZE_MAX).ok());
  EXPECT_FALSE(arena.Allocate("x", 100).ok());
}

TEST(Arena, WhatTheAllocatorRefusesIsNotCharged) {
  CountingAllocator allocator;
  allocator.refuse = true;
  Arena arena("device", 1000, allocator);
  EXPECT_TRUE(Fails(arena.Allocate("moments", 10).status(),
                    absl::StatusCode::kResourceExhausted,
                    {"tier device: moments: the device is full"}));
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, MovingABlockMovesItsOwnership) {
  HostAllocator allocator;
  Arena arena("host", 1000, allocator);
  ArenaBlock a = Take(arena, "x", 10);
  char* const data = a.data();
  ArenaBlock b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.bytes(), 0u);
  b = Take(arena, "x", 20);
  EXPECT_EQ(arena.used(), 20u);
}

TEST(Arena, AnEmptyBlockCostsNothing) {
  HostAllocator allocator;
  Arena arena("host", 0, allocator);
  const ArenaBlock block = Take(arena, "x", 0);
  EXPECT_EQ(block.data(), nullptr);
  EXPECT_TRUE(arena.ledger().empty());
}

TEST(Arena, ThreadsNeverOverdraw) {
  CountingAllocator allocator;
  Arena arena("host", 3 * 4096, allocator);
  std::vector<std::thread> threads;
  std::atomic<bool> overdrawn = false;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        absl::StatusOr<ArenaBlock> block = arena.Allocate("x", 4096);
        if (allocator.out > 3 * 4096) overdrawn = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overdrawn);
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_LE(arena.peak(), 3u * 4096);
}

TEST(ArenaDeathTest, ABlockThatOutlivesItsArenaIsABug) {
  HostAllocator allocator;
  EXPECT_DEATH(
      {
        ArenaBlock block;
        Arena arena("host", 100, allocator);
        block = Take(arena, "x", 1);
      },
      "outlives the arena of tier host");
}

}  // namespace
}  // namespace troupe
