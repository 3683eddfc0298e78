// A SentencePiece model as a tokenizer. Its name is "sentencepiece:" and the
// CRC-32C of the model's bytes in hexadecimal, so that a token file says by
// which model it was made.
//
// Where the model has byte_fallback, as Llama's and those that
// `troupe data prepare` trains have, every text comes back as it was, bytes
// that are no UTF-8 included, but for U+2581, which stands for a space in
// pieces and comes back as one. The library makes U+FFFD of such bytes; else
// the ids are the library's. BOS and EOS are never inserted.
#ifndef TROUPE_STORAGE_DATASET_SENTENCEPIECE_TOKENIZER_H_
#define TROUPE_STORAGE_DATASET_SENTENCEPIECE_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

// The name of the tokenizer that has this model, even if it is damaged.
std::string SentencePieceTokenizerName(absl::string_view model);

// `model`: the bytes of a tokenizer.model. InvalidArgument where they are none.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeSentencePieceTokenizer(
    absl::string_view model);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_SENTENCEPIECE_TOKENIZER_H_
