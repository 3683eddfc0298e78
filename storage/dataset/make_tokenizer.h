// A tokenizer by the name that a token file or a checkpoint carries: "bytes",
// "sentencepiece:1a2b3c4d" (the CRC-32C of its model), or "hf:1a2b3c4d:50256"
// (that of a tokenizer.json, and the token that ends a document).
// make_tokenizer.cc lists the kinds in one table, and a new one is one more row
// there.
#ifndef TROUPE_STORAGE_DATASET_MAKE_TOKENIZER_H_
#define TROUPE_STORAGE_DATASET_MAKE_TOKENIZER_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

// `model`: the bytes of the model's file, where there is one. InvalidArgument,
// with the names that exist, for another name; NotFound where the kind needs a
// model and none is given; FailedPrecondition where the model is not the one
// that the name speaks of.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(
    absl::string_view name,
    const std::optional<std::string>& model = std::nullopt);

// Whether it is made of a model; false for an unknown name.
bool TokenizerHasModel(absl::string_view name);

// The name of its model's file among a checkpoint's assets and in an export:
// "tokenizer.model", "tokenizer.json"; empty where it has none.
std::string TokenizerModelFile(absl::string_view name);

// Whether these are the bytes of its model, even if they are damaged.
bool IsTokenizerModel(absl::string_view name, absl::string_view model);

// Where the model of a token file lies, where its tokenizer has one:
// <tokens>.model.
std::string TokenizerModelPath(const std::string& tokens);

// A model's file, whole; and one put beside the token file `tokens`, durable.
absl::StatusOr<std::string> ReadTokenizerModel(const std::string& path);
absl::Status WriteTokenizerModel(const std::string& tokens,
                                 absl::string_view model);

// The tokenizer `name` of a token file, with the model beside it. Errors as
// above, with the model's path.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    absl::string_view name, const std::string& tokens);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_MAKE_TOKENIZER_H_
