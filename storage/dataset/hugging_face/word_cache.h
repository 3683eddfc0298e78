// The ids of words that came before: most words of a text are among a few
// thousand. Bounded: when it is full it forgets all.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_WORD_CACHE_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_WORD_CACHE_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe {

class WordCache {
 public:
  static constexpr size_t kWordBytesMax = 64;

  WordCache() : slots_(kSlots) {}

  // Appends a word's ids to `ids`; whether it has them. Remembers where it
  // looked for Add of the same word.
  bool Find(absl::string_view word, std::vector<int32_t>& ids) {
    hash_ = absl::HashOf(word) | 1;
    for (slot_ = hash_ >> 20 & (kSlots - 1); slots_[slot_].hash != 0;
         slot_ = (slot_ + 1) & (kSlots - 1)) {
      const Slot& slot = slots_[slot_];
      if (slot.hash != hash_ || slot.word_bytes != word.size() ||
          std::memcmp(words_.data() + slot.word, word.data(), word.size()) !=
              0) {
        continue;
      }
      ids.insert(ids.end(), ids_.begin() + slot.ids,
                 ids_.begin() + slot.ids + slot.id_count);
      return true;
    }
    return false;
  }

  // After Find did not have it.
  void Add(absl::string_view word, absl::Span<const int32_t> ids) {
    if (used_ >= kSlots / 2 || words_.size() > kBytesMax ||
        ids_.size() > kBytesMax) {
      slots_.assign(kSlots, Slot());
      words_.clear();
      ids_.clear();
      used_ = 0;
      slot_ = hash_ >> 20 & (kSlots - 1);
    }
    slots_[slot_] = {hash_, static_cast<uint32_t>(words_.size()),
                     static_cast<uint32_t>(ids_.size()),
                     static_cast<uint16_t>(word.size()),
                     static_cast<uint16_t>(ids.size())};
    words_.insert(words_.end(), word.begin(), word.end());
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++used_;
  }

 private:
  static constexpr size_t kSlots = 1 << 17;
  static constexpr size_t kBytesMax = 4 << 20;
  struct Slot {
    uint64_t hash = 0;  // 0: free
    uint32_t word = 0;  // where it begins in words_
    uint32_t ids = 0;
    uint16_t word_bytes = 0;
    uint16_t id_count = 0;
  };

  std::vector<Slot> slots_;
  std::vector<char> words_;
  std::vector<int32_t> ids_;
  size_t used_ = 0;
  uint64_t hash_ = 0;
  size_t slot_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_WORD_CACHE_H_
