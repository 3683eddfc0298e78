#include "storage/dataset/tokenizer_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/sentencepiece/model.h"
#include "storage/dataset/sentencepiece/tokenizer.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr absl::string_view kTokenizerJson = "tokenizer.json";

json ParseObject(const std::string& text) {
  json file = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return file.is_object() ? file : json::object();
}

bool HasPieces(const std::string& tokenizer, const SentencePieceModel& model) {
  const json file = ParseObject(tokenizer);
  const json::json_pointer place("/model/vocab");
  if (!file.contains(place)) return false;
  const json& vocabulary = file.at(place);
  if (vocabulary.size() != model.pieces.size()) return false;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const std::string& text = model.pieces[id].text;
    if (vocabulary.is_array()) {
      const json& entry = vocabulary[id];
      if (!entry.is_array() || entry.empty() || entry[0] != text) return false;
    } else if (!vocabulary.is_object() ||
               vocabulary.value(text, json()) != id) {
      return false;
    }
  }
  return true;
}

// Tokens that a config adds lie behind the model's pieces, or name one of them.
bool AddsNoOthers(const json& added, const SentencePieceModel& model) {
  if (!added.is_object()) return true;
  for (const auto& [key, token] : added.items()) {
    size_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || !token.is_object()) return false;
    if (id >= model.pieces.size()) continue;
    if (token.value("content", json()) != model.pieces[id].text) return false;
  }
  return true;
}

// Whether transformers makes the model's ids of the model and this config.
bool ReadsModel(const std::string& config, const SentencePieceModel& model) {
  const json file = ParseObject(config);
  const json name = file.value("tokenizer_class", json());
  return (name == "LlamaTokenizer" || name == "LlamaTokenizerFast") &&
         AddsNoOthers(file.value("added_tokens_decoder", json()), model);
}

}  // namespace

bool IsTokenizerFile(absl::string_view name) {
  constexpr absl::string_view kNames[] = {"tokenizer.model",
                                          "tokenizer.json",
                                          "tokenizer_config.json",
                                          "vocab.json",
                                          "merges.txt",
                                          "special_tokens_map.json",
                                          "added_tokens.json",
                                          "generation_config.json"};
  return std::count(std::begin(kNames), std::end(kNames), name) > 0;
}

bool BelongToTokens(const TokenizerFiles& files, const TokensOrigin& origin) {
  if (origin.tokenizer == "bytes") return false;
  const std::string model_file = TokenizerModelFile(origin.tokenizer);
  if (model_file.empty()) return true;  // not known
  if (model_file == kTokenizerJson) {
    return IsTokenizerModel(origin.tokenizer, files.tokenizer);
  }
  const std::string& bytes = origin.model.empty() ? files.model : origin.model;
  if (SentencePieceTokenizerName(bytes) != origin.tokenizer) return false;
  const absl::StatusOr<SentencePieceModel> model =
      ParseSentencePieceModel(bytes);
  if (!model.ok()) return false;
  if (!files.tokenizer.empty()) return HasPieces(files.tokenizer, *model);
  return files.model == bytes && ReadsModel(files.config, *model);
}

}  // namespace troupe
