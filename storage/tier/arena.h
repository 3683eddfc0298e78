// A tier of memory with a hard budget. Every state of a job lives in blocks of
// the arena of its tier, each charged to a line item ("parameters",
// "gradients", ...), so that a job which does not fit is told what fills the
// tier instead of meeting the kernel's OOM killer:
//
//   Arena host("host", 8 << 30, allocator);
//   ASSIGN_OR_RETURN(ArenaBlock gradients, host.Allocate("gradients", bytes));
//   float* g = reinterpret_cast<float*>(gradients.data());
//
// Past the budget Allocate answers ResourceExhausted:
//   tier host: gradients needs 512.0 MiB, but 7.8 GiB of the 8.0 GiB budget are
//   used (parameters 5.2 GiB, moments 2.6 GiB); 312.0 MiB short
#ifndef TROUPE_STORAGE_TIER_ARENA_H_
#define TROUPE_STORAGE_TIER_ARENA_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/tier/allocator.h"

namespace troupe {

class Arena;

// A piece of a tier; gives itself back when destroyed. Move-only.
class ArenaBlock {
 public:
  ArenaBlock() = default;
  ArenaBlock(ArenaBlock&& other) noexcept { *this = std::move(other); }
  ArenaBlock& operator=(ArenaBlock&& other) noexcept;
  ~ArenaBlock() { Release(); }

  // Null for an empty block, and where the tier is no memory.
  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }  // as asked for
  // Gives the memory back now; the block is empty afterwards.
  void Release();

 private:
  friend class Arena;
  ArenaBlock(Arena* arena, std::string line_item, char* data, size_t bytes)
      : arena_(arena),
        line_item_(std::move(line_item)),
        data_(data),
        bytes_(bytes) {}

  Arena* arena_ = nullptr;
  std::string line_item_;
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

// Bytes of one line item, now and at most so far.
struct LineItemUse {
  size_t used = 0;
  size_t peak = 0;
};

// Thread-safe. Must outlive its blocks, and the allocator must outlive it.
class Arena {
 public:
  // `tier` names it in errors: "device", "host", "nvme".
  Arena(std::string tier, size_t budget_bytes, TierAllocator& allocator);
  // Of a tier that is no memory: its blocks are room on a disk.
  Arena(std::string tier, size_t budget_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Zero bytes give an empty block. Errors: ResourceExhausted past the budget,
  // or whatever the allocator says, with the tier and the line item.
  absl::StatusOr<ArenaBlock> Allocate(absl::string_view line_item,
                                      size_t bytes);

  const std::string& tier() const { return tier_; }
  size_t budget() const { return budget_; }
  size_t used() const;
  // The most that was ever used at once.
  size_t peak() const;
  std::map<std::string, LineItemUse> ledger() const;

 private:
  friend class ArenaBlock;
  void Return(const std::string& line_item, char* data, size_t bytes);
  absl::Status PastBudget(absl::string_view line_item, size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string tier_;
  const size_t budget_;
  TierAllocator* const allocator_;  // null: no memory
  mutable absl::Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t peak_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, LineItemUse> ledger_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_TIER_ARENA_H_
