// A tokenizer.json, read: the file of Hugging Face's `tokenizers` library that
// says how a text becomes ids and ids become a text. Read strictly: what is not
// known is refused by its name and place.
//
//   text ── added tokens ── normalizer ── added tokens ── pre-tokenizer ──
//   model
//           (of the text)                 (of its normal form)
//
// "truncation" and "padding" do not count, as transformers replaces them by
// what a call asks for. The "post_processor" is checked, and does not count
// either: it inserts special tokens such as BOS, which Encode never does.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_DESCRIPTION_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_DESCRIPTION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/hugging_face/added_tokens.h"
#include "storage/dataset/hugging_face/decoder.h"
#include "storage/dataset/hugging_face/model.h"
#include "storage/dataset/hugging_face/normalizer.h"
#include "storage/dataset/hugging_face/pre_tokenizer.h"

namespace troupe {

struct TokenizerDescription {
  std::vector<AddedToken> added;
  TextNormalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<const TokenModel> model;
  TokenDecoder decoder;
};

// InvalidArgument, with the place.
absl::StatusOr<TokenizerDescription> ParseTokenizerDescription(
    absl::string_view json);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_DESCRIPTION_H_
