#include "tests/bench/watched_allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<void*> WatchedAllocator::Allocate(size_t bytes) {
  ASSIGN_OR_RETURN(void* const data, inner_.Allocate(bytes));
  blocks_.push_back({.data = data, .bytes = bytes});
  return data;
}

void WatchedAllocator::Free(void* data, size_t bytes) {
  const auto found =
      std::find_if(blocks_.begin(), blocks_.end(),
                   [&](const Block& block) { return block.data == data; });
  CHECK(found != blocks_.end());
  blocks_.erase(found);
  inner_.Free(data, bytes);
}

size_t ResidentBytes(const WatchedAllocator::Block& block) {
  const size_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> pages((block.bytes + page - 1) / page);
  CHECK_EQ(mincore(block.data, block.bytes, pages.data()), 0);
  const size_t resident =
      std::count_if(pages.begin(), pages.end(),
                    [](unsigned char state) { return (state & 1) != 0; });
  return std::min(block.bytes, resident * page);
}

}  // namespace troupe
