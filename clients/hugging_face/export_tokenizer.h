// The tokenizer files of an export, which `AutoTokenizer` of transformers
// reads: those that give the ids by which the model was trained. What a
// checkpoint carries may be another tokenizer's, of the directory where
// training began, and a SentencePiece model alone says nothing to transformers
// where the architecture is not Llama's.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_EXPORT_TOKENIZER_H_
#define TROUPE_CLIENTS_HUGGING_FACE_EXPORT_TOKENIZER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "clients/hugging_face/config.h"
#include "storage/checkpoint/assets.h"

namespace troupe {

struct ExportedTokenizer {
  std::vector<CarriedFile> files;  // of the export, besides its config.json
  // What that says of special tokens; nothing: what it said.
  absl::optional<SpecialTokenIds> ids;
};

// `tokenizer`: by name, as in a manifest (storage/dataset/make_tokenizer.h);
// where it is empty, or not one that Troupe has, `carried` stays as it is.
// InvalidArgument for a tokenizer.model that is none.
absl::StatusOr<ExportedTokenizer> ExportTokenizer(
    absl::string_view tokenizer, std::vector<CarriedFile> carried);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_EXPORT_TOKENIZER_H_
