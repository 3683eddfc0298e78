// Text as the pieces of a SentencePiece model spell it: characters mapped by
// the model's own table (NFKC and others, precompiled), spaces as U+2581, one
// put before the text, runs of them made one, each as the model says.
#ifndef TROUPE_STORAGE_DATASET_SENTENCEPIECE_NORMALIZER_H_
#define TROUPE_STORAGE_DATASET_SENTENCEPIECE_NORMALIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "storage/dataset/sentencepiece/charsmap.h"
#include "storage/dataset/sentencepiece/model.h"
#include "storage/dataset/sentencepiece/piece_trie.h"

namespace troupe {

// Immutable; thread-safe.
class Normalizer {
 public:
  // `user_defined`: pieces that stay as they are. Borrows both. InvalidArgument
  // for a table of characters that is damaged.
  static absl::StatusOr<Normalizer> Create(const SentencePieceModel& model,
                                           const PieceTrie& user_defined);

  // Where a text begins; later parts of it get no space put before them.
  enum class Part { kBeginning, kLater };
  // Bytes that are no UTF-8 stay as they are where the model has a piece for
  // each byte, else they become U+FFFD.
  std::string Normalize(absl::string_view text, Part part) const;

  // The two characters, spaces as they stand in pieces, that meet where a text
  // is cut before byte `at`. Nothing where the parts, normalized one by one,
  // may differ from the text that is normalized as one, whatever follows: an
  // entry of the table reaches over the place, a run of spaces does, or more
  // must be read to know.
  struct Seam {
    std::string before;
    std::string after;
  };
  absl::optional<Seam> SeamAt(absl::string_view text, size_t at) const;

  // Bytes that are normalized together at most. Where SeamAt finds nothing at a
  // place that this many bytes follow, more text changes nothing.
  size_t LongestEntry() const { return longest_; }

 private:
  struct Prefix {
    absl::string_view normalized;
    size_t consumed = 0;  // bytes of the text, at least 1
  };
  Normalizer(const SentencePieceModel& model, const PieceTrie& user_defined)
      : model_(&model), user_defined_(&user_defined) {}
  Prefix NormalizePrefix(absl::string_view text) const;
  bool Joins(absl::string_view text, size_t at) const;
  std::string NormalizeRange(absl::string_view text, size_t begin,
                             size_t end) const;

  const SentencePieceModel* model_;
  const PieceTrie* user_defined_;
  Charsmap map_;
  size_t longest_ = 4;  // bytes that NormalizePrefix may consume
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_SENTENCEPIECE_NORMALIZER_H_
