#include "ops/cpu/scratch.h"

#include <algorithm>
#include <new>

namespace troupe {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

ScratchPool::Block::Block(Block&& other) noexcept
    : pool_(other.pool_), memory_(other.memory_), bytes_(other.bytes_) {
  other.pool_ = nullptr;
}

ScratchPool::Block::~Block() {
  if (pool_ != nullptr) pool_->Return(memory_, bytes_);
}

ScratchPool::ScratchPool(size_t kept_blocks_max)
    : kept_blocks_max_(kept_blocks_max) {}

ScratchPool::~ScratchPool() {
  for (const Kept& kept : kept_) ::operator delete(kept.memory, kAlignment);
}

ScratchPool::Block ScratchPool::Take(size_t bytes) {
  bytes = std::max<size_t>(bytes, 64);
  {
    absl::MutexLock lock(&mutex_);
    // The smallest that is large enough.
    auto best = kept_.end();
    auto largest = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      if (largest == kept_.end() || it->bytes > largest->bytes) largest = it;
      if (it->bytes >= bytes &&
          (best == kept_.end() || it->bytes < best->bytes))
        best = it;
    }
    if (best != kept_.end()) {
      const Kept found = *best;
      kept_.erase(best);
      return Block(this, found.memory, found.bytes);
    }
    if (largest != kept_.end()) {
      bytes_ -= largest->bytes;
      ::operator delete(largest->memory, kAlignment);
      kept_.erase(largest);
    }
    bytes_ += bytes;
  }
  return Block(this, ::operator new(bytes, kAlignment), bytes);
}

size_t ScratchPool::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

void ScratchPool::Return(void* memory, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (kept_.size() == kept_blocks_max_) {
    // Drop the smallest: the large ones are what repeats.
    auto smallest = std::min_element(
        kept_.begin(), kept_.end(),
        [](const Kept& a, const Kept& b) { return a.bytes < b.bytes; });
    if (smallest->bytes < bytes) {
      std::swap(smallest->memory, memory);
      std::swap(smallest->bytes, bytes);
    }
    bytes_ -= bytes;
    ::operator delete(memory, kAlignment);
    return;
  }
  kept_.push_back({memory, bytes});
}

}  // namespace troupe
