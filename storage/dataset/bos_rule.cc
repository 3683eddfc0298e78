#include "storage/dataset/bos_rule.h"

#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/dataset/hugging_face/post_processor.h"
#include "storage/dataset/sentencepiece/model.h"

namespace troupe {
namespace {

using Ids = std::vector<int32_t>;

constexpr char kConfigName[] = "tokenizer_config.json";

absl::Status Damaged(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(kConfigName, ": ", field, ": ", what));
}

// What a tokenizer_config.json says of it.
struct BosConfig {
  std::optional<bool> adds;
  std::string token;  // empty: none
  std::string tokenizer_class;
};

absl::StatusOr<std::string> TokenOf(const nlohmann::json& token) {
  if (token.is_null()) return std::string();
  const nlohmann::json content =
      token.is_object() ? token.value("content", nlohmann::json()) : token;
  if (content.is_string()) return content.get<std::string>();
  return Damaged("bos_token", "must be a text, or an object with \"content\"");
}

absl::StatusOr<BosConfig> ReadBosConfig(absl::string_view text) {
  BosConfig config;
  if (text.empty()) return config;
  const absl::StatusOr<nlohmann::json> json = ParsePythonJsonObject(text);
  if (!json.ok()) return Annotate(json.status(), kConfigName);
  const auto field = [&json](const char* name) {
    return json->value(name, nlohmann::json());
  };
  ASSIGN_OR_RETURN(config.token, TokenOf(field("bos_token")));
  const nlohmann::json adds = field("add_bos_token");
  if (adds.is_boolean()) {
    config.adds = adds.get<bool>();
  } else if (!adds.is_null()) {
    return Damaged("add_bos_token", "must be true or false");
  }
  const nlohmann::json name = field("tokenizer_class");
  if (name.is_string()) {
    config.tokenizer_class = name.get<std::string>();
  } else if (!name.is_null()) {
    return Damaged("tokenizer_class", "must be a text");
  }
  return config;
}

bool IsJsonModel(absl::string_view model) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(model), "{");
}

// The one token that the text is, in a tokenizer.json.
absl::StatusOr<Ids> IdsOfToken(const std::string& token,
                               const Tokenizer& tokenizer) {
  Ids ids;
  if (token.empty()) return ids;
  RETURN_IF_ERROR(tokenizer.Encode(token, ids));
  if (ids.size() == 1) return ids;
  return Damaged("bos_token", absl::StrCat("\"", token,
                                           "\" is not a token of "
                                           "tokenizer.json, which makes ",
                                           ids.size(), " tokens of it"));
}

absl::StatusOr<BosRule> RuleOfJson(absl::string_view model,
                                   const BosConfig& config,
                                   const Tokenizer& tokenizer) {
  const absl::StatusOr<Ids> before = ReadTokensBefore(model);
  if (!before.ok()) return Annotate(before.status(), "tokenizer.json");
  for (const int32_t id : *before) {
    if (static_cast<uint64_t>(id) < tokenizer.vocab_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer.json: post_processor: puts token ", id,
        " before a text, and the vocabulary has ", tokenizer.vocab_size()));
  }
  ASSIGN_OR_RETURN(const Ids bos, IdsOfToken(config.token, tokenizer));
  BosRule rule = {.tokens = before->empty() ? bos : *before,
                  .adds = config.adds.value_or(!before->empty())};
  if (config.adds.value_or(false) && !bos.empty()) rule.tokens = bos;
  return rule;
}

absl::StatusOr<BosRule> RuleOfPieces(absl::string_view bytes,
                                     const BosConfig& config) {
  ASSIGN_OR_RETURN(const SentencePieceModel model,
                   ParseSentencePieceModel(bytes));
  const std::string& name =
      config.token.empty() ? model.bos_piece : config.token;
  BosRule rule;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    const bool is_special = piece.type == PieceType::kControl ||
                            piece.type == PieceType::kUserDefined;
    if (is_special && piece.text == name) {
      rule.tokens = {static_cast<int32_t>(id)};
    }
  }
  if (rule.tokens.empty() && !config.token.empty()) {
    return Damaged("bos_token", absl::StrCat("\"", name,
                                             "\" is not a special piece of "
                                             "tokenizer.model"));
  }
  const bool by_class =
      absl::StartsWith(config.tokenizer_class, "LlamaTokenizer") ||
      absl::StartsWith(config.tokenizer_class, "GemmaTokenizer");
  rule.adds = config.adds.value_or(by_class);
  return rule;
}

}  // namespace

absl::StatusOr<BosRule> FindBosRule(const TokenizerBytes& files,
                                    const Tokenizer& tokenizer) {
  if (files.model.empty()) return BosRule();
  ASSIGN_OR_RETURN(const BosConfig config, ReadBosConfig(files.config));
  ASSIGN_OR_RETURN(BosRule rule,
                   IsJsonModel(files.model)
                       ? RuleOfJson(files.model, config, tokenizer)
                       : RuleOfPieces(files.model, config));
  if (!rule.adds || !rule.tokens.empty()) return rule;
  return Damaged("add_bos_token",
                 "is true, and no bos_token says which token that is");
}

}  // namespace troupe
