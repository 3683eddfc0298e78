// Texts by their bytes: which pieces begin at a place.
#ifndef TROUPE_STORAGE_DATASET_SENTENCEPIECE_PIECE_TRIE_H_
#define TROUPE_STORAGE_DATASET_SENTENCEPIECE_PIECE_TRIE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace troupe {

class PieceTrie {
 public:
  // The first to come keeps its text. Requires a text that is not empty.
  void Add(absl::string_view text, int32_t id);

  // Calls `found` with the id and the length of each piece that `text` begins
  // with, the shortest first.
  template <typename Found>
  void ForEachPrefix(absl::string_view text, Found found) const;

  // Of the longest piece that `text` begins with; 0 where there is none.
  size_t LongestPrefix(absl::string_view text) const;

 private:
  static uint64_t Edge(uint32_t node, char byte) {
    return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
  }

  std::vector<int32_t> ids_ = {-1};  // by node; the first is the root
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
};

template <typename Found>
void PieceTrie::ForEachPrefix(absl::string_view text, Found found) const {
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto next = edges_.find(Edge(node, text[i]));
    if (next == edges_.end()) return;
    node = next->second;
    if (ids_[node] >= 0) found(ids_[node], i + 1);
  }
}

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_SENTENCEPIECE_PIECE_TRIE_H_
