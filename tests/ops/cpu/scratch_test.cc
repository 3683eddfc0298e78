#include "ops/cpu/scratch.h"

#include <cstdint>
#include <optional>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ScratchPool, GivesBlocksBackAndKeepsThemApart) {
  ScratchPool pool(2);
  void* first;
  {
    ScratchPool::Block a = pool.Take(1000);
    ScratchPool::Block b = pool.Take(1000);
    first = a.as<void>();
    EXPECT_NE(first, b.as<void>());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  }
  ScratchPool::Block again = pool.Take(900);
  ScratchPool::Block other = pool.Take(900);
  EXPECT_TRUE(again.as<void>() == first || other.as<void>() == first);
}

TEST(ScratchPool, KeepsTheLargeOnes) {
  ScratchPool pool(1);
  std::optional<ScratchPool::Block> large = pool.Take(1 << 20);
  std::optional<ScratchPool::Block> small = pool.Take(64);
  void* memory = large->as<void>();
  small.reset();
  large.reset();
  EXPECT_EQ(pool.Take(1 << 20).as<void>(), memory);
}

TEST(ScratchPool, GrowsToTheLargestOfWhatIsLentAtOnce) {
  ScratchPool pool(4);
  for (int step = 0; step < 3; ++step) {
    for (const size_t bytes : {100, 5000, 300, 2000}) {
      const ScratchPool::Block a = pool.Take(bytes);
      const ScratchPool::Block b = pool.Take(bytes);
    }
    pool.Take(9000);
  }
  EXPECT_LE(pool.bytes(), 2u * 9000u);
  EXPECT_GE(pool.bytes(), 5000u + 9000u);
}

}  // namespace
}  // namespace troupe
