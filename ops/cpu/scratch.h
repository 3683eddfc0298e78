// Short-lived working memory of a kernel, such as the packed blocks of
// attention. Blocks go back to a pool of bounded size, so that a training step
// allocates nothing after the first. A block that is too small for what is
// asked is replaced and not kept beside the larger one: the pool grows to as
// many blocks as are lent at once, each as large as the largest request.
#ifndef TROUPE_OPS_CPU_SCRATCH_H_
#define TROUPE_OPS_CPU_SCRATCH_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace troupe {

// Thread-safe. Outlives the blocks that it lent.
class ScratchPool {
 public:
  // A lent block; goes back when it is destroyed. Aligned to 64 bytes,
  // uninitialised.
  class Block {
   public:
    Block(Block&& other) noexcept;
    ~Block();
    template <typename T>
    T* as() {
      return static_cast<T*>(memory_);
    }

   private:
    friend class ScratchPool;
    Block(ScratchPool* pool, void* memory, size_t bytes)
        : pool_(pool), memory_(memory), bytes_(bytes) {}

    ScratchPool* pool_;  // null once moved from
    void* memory_;
    size_t bytes_;
  };

  // Keeps at most this many blocks that nobody uses.
  explicit ScratchPool(size_t kept_blocks_max);
  ~ScratchPool();

  Block Take(size_t bytes);

  // Of all blocks, lent or kept.
  size_t bytes() const;

 private:
  struct Kept {
    void* memory;
    size_t bytes;
  };

  void Return(void* memory, size_t bytes);

  const size_t kept_blocks_max_;
  mutable absl::Mutex mutex_;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SCRATCH_H_
