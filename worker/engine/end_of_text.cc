#include "worker/engine/end_of_text.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/hugging_face_files.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/dataset/tokenizer_files.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr char kGenerationConfig[] = "generation_config.json";
constexpr char kKey[] = "eos_token_id";
constexpr int32_t kGpt2EndOfText = 50256;

// What transformers takes where a config.json has no eos_token_id.
struct DefaultRow {
  absl::string_view model_type;
  int32_t id;
};
constexpr DefaultRow kDefaults[] = {
    {"gpt2", kGpt2EndOfText}, {"llama", 2}, {"mistral", 2}, {"gpt_neox", 2}};

using Ids = std::set<int64_t>;

absl::Status AddIds(const json& value, absl::string_view file, Ids& ids) {
  const json list = value.is_array() ? value : json::array({value});
  for (const json& id : list) {
    if (!id.is_number_integer()) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ": ", kKey, ": is neither an integer nor a list of them"));
    }
    ids.insert(id.get<int64_t>());
  }
  return absl::OkStatus();
}

// Whether the file says something, be it that there are none.
absl::StatusOr<bool> AddOfFile(const json& file, absl::string_view name,
                               Ids& ids) {
  const auto found = file.find(kKey);
  if (found == file.end()) return false;
  if (!found->is_null()) RETURN_IF_ERROR(AddIds(*found, name, ids));
  return true;
}

absl::StatusOr<json> Parse(const std::string& text, absl::string_view name) {
  absl::StatusOr<json> file = ParsePythonJsonObject(text);
  if (!file.ok()) return Annotate(file.status(), name);
  return file;
}

absl::Status AddOfConfigs(const EndOfTextSources& sources, Ids& ids) {
  if (!sources.generation_config.empty()) {
    ASSIGN_OR_RETURN(const json file,
                     Parse(sources.generation_config, kGenerationConfig));
    RETURN_IF_ERROR(AddOfFile(file, kGenerationConfig, ids).status());
    if (!ids.empty()) return absl::OkStatus();
  }
  if (sources.config.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const json file, Parse(sources.config, kHuggingFaceConfig));
  ASSIGN_OR_RETURN(const bool said, AddOfFile(file, kHuggingFaceConfig, ids));
  if (said) return absl::OkStatus();
  for (const DefaultRow& row : kDefaults) {
    if (sources.model.architecture() == row.model_type) ids.insert(row.id);
  }
  return absl::OkStatus();
}

// Its 50,257 tokens, of which the last ends a text, and what makes their number
// a multiple of 128.
bool HasGpt2Vocabulary(const ModelSpec& model) {
  return model.architecture() == "gpt2" &&
         model.vocab_size() > kGpt2EndOfText && model.vocab_size() <= 50304;
}

absl::StatusOr<std::string> Carried(const std::string& checkpoint,
                                    const Manifest& manifest,
                                    absl::string_view name) {
  for (const ManifestFile& asset : manifest.assets) {
    if (asset.name == name) return ReadCarriedFile(checkpoint, name);
  }
  return std::string();
}

}  // namespace

absl::StatusOr<std::set<int32_t>> EndOfTextTokens(
    const EndOfTextSources& sources) {
  Ids ids;
  RETURN_IF_ERROR(AddOfConfigs(sources, ids));
  if (sources.tokenizer != nullptr) {
    const std::optional<int32_t> own = sources.tokenizer->eos_id();
    if (own.has_value()) ids.insert(*own);
  } else if (sources.config.empty() && sources.generation_config.empty() &&
             HasGpt2Vocabulary(sources.model)) {
    ids.insert(kGpt2EndOfText);
  }
  std::set<int32_t> tokens;
  for (const int64_t id : ids) {
    if (id < 0 || id >= sources.model.vocab_size()) continue;
    tokens.insert(static_cast<int32_t>(id));
  }
  return tokens;
}

absl::StatusOr<std::set<int32_t>> EndOfTextTokensOf(
    const std::string& checkpoint, const Manifest& manifest,
    const ModelSpec& model, const Tokenizer* tokenizer) {
  const auto carried = [&](absl::string_view name) {
    return Carried(checkpoint, manifest, name);
  };
  TokenizerFiles files;
  ASSIGN_OR_RETURN(files.model, carried("tokenizer.model"));
  ASSIGN_OR_RETURN(files.tokenizer, carried("tokenizer.json"));
  ASSIGN_OR_RETURN(files.config, carried("tokenizer_config.json"));
  EndOfTextSources sources = {.generation_config = "",
                              .config = "",
                              .model = model,
                              .tokenizer = tokenizer};
  if (BelongToTokens(files,
                     {.tokenizer = manifest.tokenizer, .model = files.model})) {
    ASSIGN_OR_RETURN(sources.generation_config, carried(kGenerationConfig));
    ASSIGN_OR_RETURN(sources.config, carried(kHuggingFaceConfig));
  } else if (tokenizer == nullptr) {
    return std::set<int32_t>();  // of a tokenizer that cannot be asked
  }
  return EndOfTextTokens(sources);
}

}  // namespace troupe
