// How ids become a text again (a tokenizer.json's "decoder"). What a decoder
// does to each token is done once, when it is read; the rest is done at a
// text's beginning.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_DECODER_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_DECODER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/hugging_face/json_place.h"

namespace troupe {

// Immutable; thread-safe.
class TokenDecoder {
 public:
  // Null: tokens with spaces between them, as the library has it.
  // InvalidArgument for what is not known.
  static absl::StatusOr<TokenDecoder> Parse(const JsonPlace& place);

  // What a token stands for within a text, and at its beginning: bytes that
  // need not be valid UTF-8.
  std::string Within(absl::string_view token) const {
    return Apply(token, /*is_first=*/false);
  }
  std::string First(absl::string_view token) const {
    return Apply(token, /*is_first=*/true);
  }
  // What is left out at the beginning of a whole text: this many of these
  // bytes at most.
  absl::string_view stripped() const { return stripped_; }
  int64_t stripped_max() const { return stripped_max_; }

 private:
  friend struct TokenDecoderParser;
  // Errors are those of a pattern: then the token stays.
  using Step = std::function<void(std::string& token, bool is_first)>;
  std::string Apply(absl::string_view token, bool is_first) const;

  std::vector<Step> steps_;
  std::string stripped_;
  int64_t stripped_max_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_DECODER_H_
