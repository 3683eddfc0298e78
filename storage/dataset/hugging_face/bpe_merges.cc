#include "storage/dataset/hugging_face/bpe_merges.h"

#include <algorithm>
#include <cstddef>
#include <queue>

#include "absl/container/flat_hash_map.h"

namespace troupe {
namespace {

using Pair = std::pair<int32_t, int32_t>;

struct PairInfo {
  int64_t count = 0;
  std::vector<uint32_t> words;  // that have it, or had it; some twice
};

struct HeapEntry {
  int64_t count;
  Pair pair;

  // Of a max-heap: the most frequent is on top, then the least ids.
  bool operator<(const HeapEntry& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Merger {
 public:
  explicit Merger(std::vector<CountedWord>& words) : words_(words) {
    for (size_t i = 0; i < words.size(); ++i) {
      const std::vector<int32_t>& symbols = words[i].symbols;
      for (size_t at = 0; at + 1 < symbols.size(); ++at) {
        Count({symbols[at], symbols[at + 1]}, words[i].count, i);
      }
    }
    for (const auto& [pair, info] : pairs_) heap_.push({info.count, pair});
    touched_.clear();
  }

  std::vector<BpeMerge> Run(const BpeMergeOptions& options) {
    std::vector<BpeMerge> merges;
    while (static_cast<int64_t>(merges.size()) < options.merges_max &&
           !heap_.empty()) {
      const HeapEntry top = heap_.top();
      heap_.pop();
      const int64_t count = pairs_[top.pair].count;
      if (top.count != count) {  // it has become rarer since
        if (count > 0) heap_.push({count, top.pair});
        continue;
      }
      if (count < std::max<int64_t>(1, options.min_count)) break;
      const auto [left, right] = top.pair;
      merges.push_back({left, right, options.id_of(left, right)});
      Merge(merges.back());
    }
    return merges;
  }

 private:
  void Count(Pair pair, int64_t count, size_t word) {
    PairInfo& info = pairs_[pair];
    info.count += count;
    if (count < 0) return;
    if (info.words.empty() || info.words.back() != word) {
      info.words.push_back(static_cast<uint32_t>(word));
    }
    touched_.push_back(pair);
  }

  void Merge(const BpeMerge& merge) {
    // Nothing adds to it any more: neighbours of old tokens are old, too.
    std::vector<uint32_t> words;
    words.swap(pairs_[{merge.left, merge.right}].words);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    touched_.clear();
    for (const uint32_t word : words) MergeIn(merge, word);
    pairs_[{merge.left, merge.right}].count = 0;
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()),
                   touched_.end());
    for (const Pair& pair : touched_) {
      const int64_t count = pairs_[pair].count;
      if (count > 0) heap_.push({count, pair});
    }
  }

  // From left to right. Counts change by the pairs on both sides of what is
  // merged.
  void MergeIn(const BpeMerge& merge, size_t index) {
    CountedWord& word = words_[index];
    std::vector<int32_t>& symbols = word.symbols;
    size_t to = 0;
    for (size_t at = 0; at < symbols.size(); ++at) {
      const bool found = symbols[at] == merge.left && at + 1 < symbols.size() &&
                         symbols[at + 1] == merge.right;
      if (!found) {
        symbols[to++] = symbols[at];
        continue;
      }
      if (to > 0) {
        Count({symbols[to - 1], merge.left}, -word.count, index);
        Count({symbols[to - 1], merge.made}, word.count, index);
      }
      ++at;
      if (at + 1 < symbols.size()) {
        Count({merge.right, symbols[at + 1]}, -word.count, index);
        Count({merge.made, symbols[at + 1]}, word.count, index);
      }
      symbols[to++] = merge.made;
    }
    symbols.resize(to);
  }

  std::vector<CountedWord>& words_;
  absl::flat_hash_map<Pair, PairInfo> pairs_;
  std::priority_queue<HeapEntry> heap_;
  std::vector<Pair> touched_;  // whose counts have grown
};

}  // namespace

std::vector<BpeMerge> FindBpeMerges(const BpeMergeOptions& options,
                                    std::vector<CountedWord>& words) {
  return Merger(words).Run(options);
}

}  // namespace troupe
