// An allocator that can say how much of what it gave is really there: pages
// that somebody has touched.
#ifndef TROUPE_TESTS_BENCH_WATCHED_ALLOCATOR_H_
#define TROUPE_TESTS_BENCH_WATCHED_ALLOCATOR_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/tier/allocator.h"

namespace troupe {

// One thread.
class WatchedAllocator final : public TierAllocator {
 public:
  // `inner` gives host memory, aligned to pages, and outlives this.
  explicit WatchedAllocator(TierAllocator& inner) : inner_(inner) {}

  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* data, size_t bytes) override;

  // In the order in which they were allocated.
  struct Block {
    void* data = nullptr;
    size_t bytes = 0;
  };
  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  TierAllocator& inner_;
  std::vector<Block> blocks_;
};

// Of the block, what is in memory.
size_t ResidentBytes(const WatchedAllocator::Block& block);

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_WATCHED_ALLOCATOR_H_
