// The merges of a BPE model: of two tokens that stand side by side, which token
// they become, and how early. Open addressing in one array, as it is asked for
// every pair of every word.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_MERGE_TABLE_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_MERGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

class MergeTable {
 public:
  struct Entry {
    uint64_t pair = kEmpty;
    uint32_t rank = 0;
    int32_t id = 0;
  };

  // For this many pairs at most.
  explicit MergeTable(size_t count) {
    size_t capacity = 16;
    while (capacity < 2 * count) capacity *= 2;
    entries_.resize(capacity);
    mask_ = capacity - 1;
  }

  // The last to come keeps its pair.
  void Add(int32_t left, int32_t right, uint32_t rank, int32_t id) {
    Entry& entry = entries_[SlotOf(Pair(left, right))];
    entry = {Pair(left, right), rank, id};
  }

  // Null where they do not merge.
  const Entry* Find(int32_t left, int32_t right) const {
    const Entry& entry = entries_[SlotOf(Pair(left, right))];
    return entry.pair == kEmpty ? nullptr : &entry;
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static uint64_t Pair(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
           static_cast<uint32_t>(right);
  }
  size_t SlotOf(uint64_t pair) const {
    uint64_t hash = pair * 0x9E3779B97F4A7C15u;
    size_t slot = (hash ^ hash >> 32) & mask_;
    while (entries_[slot].pair != kEmpty && entries_[slot].pair != pair) {
      slot = (slot + 1) & mask_;
    }
    return slot;
  }

  std::vector<Entry> entries_;
  size_t mask_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_MERGE_TABLE_H_
