// Text as the pieces of a SentencePiece model spell it: characters mapped by
// the model's own table (NFKC and others, precompiled), spaces as U+2581, one
// put before the text, runs of them made one, each as the model says.
#ifndef TROUPE_STORAGE_DATASET_SENTENCEPIECE_NORMALIZER_H_
#define TROUPE_STORAGE_DATASET_SENTENCEPIECE_NORMALIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

 private:
  struct Prefix {
    absl::string_view normalized;
    size_t consumed = 0;  // bytes of the text, at least 1
  };
  Normalizer(const SentencePieceModel& model, const PieceTrie& user_defined)
      : model_(&model), user_defined_(&user_defined) {}
  Prefix NormalizePrefix(absl::string_view text) const;
  Prefix LookUp(absl::string_view text) const;

  const SentencePieceModel* model_;
  const PieceTrie* user_defined_;
  std::vector<uint32_t> units_;     // a double array, as Darts-clone writes it
  absl::string_view replacements_;  // in the model; each ends in a zero byte
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_SENTENCEPIECE_NORMALIZER_H_
