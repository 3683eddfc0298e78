// Short-lived working memory of a kernel, such as the packed blocks of
// attention. Blocks go back to a pool of bounded size, so that a training step
// allocates nothing after the first.
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

 private:
  struct Kept {
    void* memory;
    size_t bytes;
  };

  void Return(void* memory, size_t bytes);

  const size_t kept_blocks_max_;
  absl::Mutex mutex_;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SCRATCH_H_
