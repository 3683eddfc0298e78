#include "clients/hugging_face/config.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/hugging_face/families.h"
#include "clients/hugging_face/json_fields.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr uint64_t kConfigBytesMax = uint64_t{16} << 20;

absl::Status ReadSizes(const JsonFields& fields, const SizeKeys& keys,
                       ModelSpec& model) {
  ASSIGN_OR_RETURN(const int layers, fields.Int(keys.layers));
  ASSIGN_OR_RETURN(const int hidden, fields.Int(keys.hidden));
  ASSIGN_OR_RETURN(const int heads, fields.Int(keys.heads));
  ASSIGN_OR_RETURN(const int positions, fields.Int(keys.positions));
  ASSIGN_OR_RETURN(const int vocab, fields.Int("vocab_size"));
  model.set_num_hidden_layers(layers);
  model.set_hidden_size(hidden);
  model.set_num_attention_heads(heads);
  model.set_max_position_embeddings(positions);
  model.set_vocab_size(vocab);
  if (fields.Has(keys.intermediate)) {
    ASSIGN_OR_RETURN(const int intermediate, fields.Int(keys.intermediate));
    model.set_intermediate_size(intermediate);
  }
  if (fields.Has("initializer_range")) {
    ASSIGN_OR_RETURN(const double range, fields.Number("initializer_range"));
    model.set_initializer_range(range);
  }
  return absl::OkStatus();
}

absl::Status RefuseQuantised(const JsonFields& fields) {
  if (!fields.Has("quantization_config")) return absl::OkStatus();
  return fields.Error("quantization_config",
                      "quantised weights cannot be trained; use the model in "
                      "float32, bfloat16 or float16");
}

absl::StatusOr<ModelSpec> ReadFamily(const JsonFields& fields,
                                     const HuggingFaceFamily& family) {
  ModelSpec model;
  model.set_architecture(family.model_type);
  RETURN_IF_ERROR(ReadSizes(fields, family.keys, model));
  ASSIGN_OR_RETURN(const bool tied,
                   fields.BoolOr("tie_word_embeddings", family.tied));
  model.set_tie_word_embeddings(tied);
  RETURN_IF_ERROR(family.read(fields, model));
  return model;
}

// REQUIRES an architecture that Hugging Face has.
const HuggingFaceFamily& FamilyOf(const ModelSpec& model) {
  for (const HuggingFaceFamily& family : HuggingFaceFamilies()) {
    if (model.architecture() == family.model_type) return family;
  }
  CHECK(false) << "no model type of Hugging Face: " << model.architecture();
  return HuggingFaceFamilies().front();
}

}  // namespace

absl::StatusOr<ModelSpec> ParseHuggingFaceConfig(absl::string_view text,
                                                 absl::string_view where) {
  const absl::StatusOr<json> config = ParsePythonJsonObject(text);
  if (!config.ok()) return Annotate(config.status(), where);
  const JsonFields fields(*config, std::string(where));
  ASSIGN_OR_RETURN(const std::string type, fields.Text("model_type"));
  RETURN_IF_ERROR(RefuseQuantised(fields));
  std::vector<std::string> types;
  for (const HuggingFaceFamily& family : HuggingFaceFamilies()) {
    if (type == family.model_type) return ReadFamily(fields, family);
    types.push_back(family.model_type);
  }
  return fields.Error("model_type",
                      absl::StrCat("'", type, "' is not supported; there are ",
                                   absl::StrJoin(types, ", ")));
}

absl::StatusOr<ModelSpec> ReadHuggingFaceConfig(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/config.json");
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kConfigBytesMax);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(
        text.status().message(), "; give a Hugging Face model's directory"));
  }
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(ModelSpec model, ParseHuggingFaceConfig(*text, path));
  model.set_hf(directory);
  return model;
}

std::string FormatHuggingFaceConfig(const HuggingFaceConfigArgs& args) {
  json config = ParsePythonJsonObject(args.base).value_or(json(json::object()));
  const ModelSpec& model = args.model;
  const HuggingFaceFamily& family = FamilyOf(model);
  const SizeKeys& keys = family.keys;
  config["architectures"] = {family.architecture};
  config["model_type"] = family.model_type;
  config["dtype"] = args.dtype;
  config["torch_dtype"] = args.dtype;  // what it was called until 4.56
  config[keys.layers] = model.num_hidden_layers();
  config[keys.hidden] = model.hidden_size();
  config[keys.heads] = model.num_attention_heads();
  config[keys.positions] = model.max_position_embeddings();
  config[keys.intermediate] = model.intermediate_size();
  config["vocab_size"] = model.vocab_size();
  config["initializer_range"] = model.initializer_range();
  config["tie_word_embeddings"] = model.tie_word_embeddings();
  if (args.ids.has_value()) {
    const auto set = [&](const char* key, absl::optional<int32_t> id) {
      config[key] = id.has_value() ? json(*id) : json();
    };
    set("bos_token_id", args.ids->bos);
    set("eos_token_id", args.ids->eos);
    set("pad_token_id", args.ids->pad);
  }
  // transformers' own defaults are of the pretrained models' tokenizers, and
  // may lie outside of this vocabulary.
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    if (!config.contains(key)) config[key] = nullptr;
  }
  family.write(model, config);
  return absl::StrCat(FormatPythonJson(std::move(config)), "\n");
}

}  // namespace troupe
