// Hugging Face's config.json and our ModelSpec, one into the other: what
// `model: {hf: DIR}`, `troupe import` and `troupe export` know of a model
// besides its weights.
//
// The model types are those of families.h. RoPE is read as transformers 5
// writes it (rope_parameters) and as it was before (rope_theta, rope_scaling).
// What would train another network than the file means, an activation that we
// lack or quantised weights, is refused with the key.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_CONFIG_H_
#define TROUPE_CLIENTS_HUGGING_FACE_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"

namespace troupe {

// The model of a config.json; `where`, its path, opens each error.
// InvalidArgument for text that is no such file or a network that Troupe lacks.
absl::StatusOr<ModelSpec> ParseHuggingFaceConfig(absl::string_view json,
                                                 absl::string_view where);

// That of `directory`/config.json, with `hf` set. NotFound where there is none.
absl::StatusOr<ModelSpec> ReadHuggingFaceConfig(const std::string& directory);

// Ids of tokens that are no text; nothing: the tokenizer has none such.
struct SpecialTokenIds {
  absl::optional<int32_t> bos = absl::nullopt;
  absl::optional<int32_t> eos = absl::nullopt;
  absl::optional<int32_t> pad = absl::nullopt;
};

// config.json of a resolved model. Keys that say nothing about the network (ids
// of special tokens, ...) are taken from `base`, an earlier config.json, where
// it is not empty, but for `ids`, where they are given. `dtype` is of the
// weights: "float32", "bfloat16".
struct HuggingFaceConfigArgs {
  const ModelSpec& model;
  std::string dtype;
  std::string base;
  absl::optional<SpecialTokenIds> ids = absl::nullopt;
};
std::string FormatHuggingFaceConfig(const HuggingFaceConfigArgs& args);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_CONFIG_H_
