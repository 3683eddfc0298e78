#include "storage/dataset/sentencepiece/piece_trie.h"

#include "proto/base/check.h"

namespace troupe {

void PieceTrie::Add(absl::string_view text, int32_t id) {
  CHECK(!text.empty());
  uint32_t node = 0;
  for (const char byte : text) {
    const auto [next, is_new] =
        edges_.emplace(Edge(node, byte), static_cast<uint32_t>(ids_.size()));
    if (is_new) ids_.push_back(-1);
    node = next->second;
  }
  if (ids_[node] < 0) ids_[node] = id;
}

size_t PieceTrie::LongestPrefix(absl::string_view text) const {
  size_t longest = 0;
  ForEachPrefix(text, [&](int32_t, size_t length) { longest = length; });
  return longest;
}

}  // namespace troupe
