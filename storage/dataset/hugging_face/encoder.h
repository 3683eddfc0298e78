// Text to ids, as a tokenizer.json describes it (description.h), and where a
// long text may be cut.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_ENCODER_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_ENCODER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/dataset/hugging_face/added_tokens.h"
#include "storage/dataset/hugging_face/description.h"
#include "storage/dataset/hugging_face/word_cache.h"

namespace troupe {

// Thread-safe. Gives each call scratch memory, with the words that it knows by
// then, so that what was learned in one call serves the next.
class Encoder {
 public:
  static absl::StatusOr<std::unique_ptr<Encoder>> Create(
      TokenizerDescription description);

  const TokenizerDescription& description() const { return description_; }

  // Appends. `continues`: the text goes on with what came before it.
  absl::Status Encode(absl::string_view text, bool continues,
                      std::vector<int32_t>& ids) const;

  // Tokenizer::CutPoint.
  size_t CutPoint(absl::string_view text, size_t& searched) const;

 private:
  struct Workspace {
    PatternScratch patterns;
    NormalizerScratch normalizer;
    SplitText first;
    SplitText second;
    ModelScratch model;
    WordCache words;
  };
  // Lent for a call.
  class Loan;
  class CutSearch;

  explicit Encoder(TokenizerDescription description)
      : description_(std::move(description)) {}
  absl::Status EncodeSegment(absl::string_view text, TextPlace place,
                             Workspace& work, std::vector<int32_t>& ids) const;
  absl::Status EncodeNormalized(absl::string_view text, TextPlace place,
                                Workspace& work,
                                std::vector<int32_t>& ids) const;

  const TokenizerDescription description_;
  TokenFinder of_text_;
  TokenFinder of_normalized_;
  bool strips_ = false;  // a token takes white space beside it
  mutable absl::Mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_ENCODER_H_
