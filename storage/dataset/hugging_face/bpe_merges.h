// The merges of a BPE, found in counted words.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_BPE_MERGES_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_BPE_MERGES_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace troupe {

struct CountedWord {
  std::vector<int32_t> symbols;  // ids, from left to right
  int64_t count = 0;
};

struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t made = 0;  // the id of both together
};

struct BpeMergeOptions {
  int64_t merges_max = 0;
  int64_t min_count = 1;
  // The id of two tokens together: a new one, or that of a token which is
  // spelled the same.
  std::function<int32_t(int32_t left, int32_t right)> id_of;
};

// In the order in which they are made: always the most frequent pair, of equal
// ones that with the least left id, then the least right one. The words become
// what they are by all of them. Pairs are kept in a heap by their counts, each
// with the words that have it, so that a merge costs what it changes.
std::vector<BpeMerge> FindBpeMerges(const BpeMergeOptions& options,
                                    std::vector<CountedWord>& words);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_BPE_MERGES_H_
