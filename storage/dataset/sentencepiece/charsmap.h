// A SentencePiece model's table of characters ("precompiled_charsmap"): texts
// of one or more characters, and by what each is replaced. A Darts-clone double
// array with the replacements behind it.
#ifndef TROUPE_STORAGE_DATASET_SENTENCEPIECE_CHARSMAP_H_
#define TROUPE_STORAGE_DATASET_SENTENCEPIECE_CHARSMAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// Immutable; thread-safe.
class Charsmap {
 public:
  Charsmap() = default;  // of no entries
  // Borrows the table's bytes. InvalidArgument where they are damaged.
  static absl::StatusOr<Charsmap> Parse(absl::string_view table);

  struct Entry {
    absl::string_view normalized;
    size_t consumed = 0;  // bytes of the text; 0: there is no entry
  };
  // The longest entry that `text` begins with, or the shortest.
  Entry Longest(absl::string_view text) const { return LookUp(text, true); }
  Entry Shortest(absl::string_view text) const { return LookUp(text, false); }

  // Bytes of the longest entry.
  size_t longest() const { return longest_; }

 private:
  Entry LookUp(absl::string_view text, bool longest) const;
  absl::Status Measure();

  std::vector<uint32_t> units_;
  absl::string_view replacements_;  // each ends in a zero byte
  size_t longest_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_SENTENCEPIECE_CHARSMAP_H_
