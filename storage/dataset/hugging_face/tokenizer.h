// A Hugging Face tokenizer.json as a tokenizer. Its ids are those of the
// `tokenizers` library (encode without special tokens): tokens such as BOS are
// never inserted, but those that a text spells are found. Bytes that are not
// UTF-8 become U+FFFD, as in Python's errors="replace".
//
// Its name says by which file the tokens were made, and which of them ends a
// document: "hf:1a2b3c4d:50256", or "hf:1a2b3c4d:none". The number in the
// middle is the CRC-32C of the file's bytes. The end of a document is
//
//  * eos_token of the tokenizer_config.json beside it, where that is given;
//  * else the first of these that is among the added tokens: <|endoftext|>,
//    <|end_of_text|>, </s>, <｜end▁of▁sentence｜>, <eos>. <|eot_id|> and
//    <|im_end|> end a turn of a dialogue, not a document.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_TOKENIZER_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

// `json`: the bytes of a tokenizer.json. `config`: of tokenizer_config.json;
// empty where there is none. InvalidArgument, with the place, where they are
// damaged or say something that is not known.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeHuggingFaceTokenizer(
    absl::string_view json, absl::string_view config = "");

// The same, with the end of a document that `name` speaks of.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeNamedHuggingFaceTokenizer(
    absl::string_view json, absl::string_view name);

// Whether the name is that of a tokenizer with these bytes, even if they are
// damaged.
bool IsHuggingFaceTokenizerOf(absl::string_view name, absl::string_view json);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_TOKENIZER_H_
