#include "clients/hugging_face/export_tokenizer.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/hugging_face/sentencepiece_json.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/sentencepiece/model.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "storage/dataset/tokenizer.h"
#include "storage/dataset/tokenizer_files.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr char kModel[] = "tokenizer.model";
constexpr char kTokenizer[] = "tokenizer.json";
constexpr char kConfig[] = "tokenizer_config.json";

const CarriedFile* Find(const std::vector<CarriedFile>& files,
                        absl::string_view name) {
  const auto found =
      std::find_if(files.begin(), files.end(),
                   [&](const CarriedFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::string ContentOf(const std::vector<CarriedFile>& files,
                      absl::string_view name) {
  const CarriedFile* file = Find(files, name);
  return file == nullptr ? "" : file->bytes;
}

absl::optional<int32_t> ControlId(const SentencePieceModel& model,
                                  absl::string_view text) {
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.type == PieceType::kControl && piece.text == text) {
      return static_cast<int32_t>(id);
    }
  }
  return absl::nullopt;
}

std::string Text(const json& file) {
  return absl::StrCat(file.dump(2, ' ', false, json::error_handler_t::replace),
                      "\n");
}

// Troupe's own tokenizers never insert special tokens, nor find them in a text.
json ConfigJson() {
  return {{"tokenizer_class", "PreTrainedTokenizerFast"},
          {"clean_up_tokenization_spaces", false},
          {"split_special_tokens", true}};
}

ExportedTokenizer OfSentencePiece(const SentencePieceModel& model) {
  json config = ConfigJson();
  config["unk_token"] = model.pieces[model.unknown_id].text;
  const auto id_of = [&](const char* key, const std::string& text) {
    const absl::optional<int32_t> id = ControlId(model, text);
    if (id.has_value()) config[key] = text;
    return id;
  };
  const SpecialTokenIds ids = {.bos = id_of("bos_token", model.bos_piece),
                               .eos = id_of("eos_token", model.eos_piece),
                               .pad = id_of("pad_token", model.pad_piece)};
  return {.files = {{kTokenizer, Text(SentencePieceJson(model))},
                    {kConfig, Text(config)}},
          .ids = ids};
}

// The character by which the library's byte-level tokenizers write a byte:
// itself where it is printed, else the next after U+00FF.
std::string ByteCharacter(int byte) {
  const auto is_printed = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  int code = byte;
  if (!is_printed(byte)) {
    code = 256;
    for (int other = 0; other < byte; ++other) code += !is_printed(other);
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6),
          static_cast<char>(0x80 | (code & 0x3F))};
}

ExportedTokenizer OfBytes() {
  json vocabulary = json::object();
  for (int byte = 0; byte < 256; ++byte) vocabulary[ByteCharacter(byte)] = byte;
  const json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", false}};
  const json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", json::array()},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", byte_level},
                          {"post_processor", nullptr},
                          {"decoder", byte_level},
                          {"model",
                           {{"type", "BPE"},
                            {"dropout", nullptr},
                            {"unk_token", nullptr},
                            {"continuing_subword_prefix", nullptr},
                            {"end_of_word_suffix", nullptr},
                            {"fuse_unk", false},
                            {"byte_fallback", false},
                            {"ignore_merges", false},
                            {"vocab", std::move(vocabulary)},
                            {"merges", json::array()}}}};
  return {
      .files = {{kTokenizer, Text(tokenizer)}, {kConfig, Text(ConfigJson())}},
      .ids = SpecialTokenIds()};
}

// A tokenizer.json alone: all that AutoTokenizer needs besides is which class
// reads it, and which token ends a text.
absl::StatusOr<ExportedTokenizer> OfTokenizerJson(
    absl::string_view tokenizer, const std::string& bytes,
    std::vector<CarriedFile> carried) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> made =
      MakeNamedHuggingFaceTokenizer(bytes, tokenizer);
  if (!made.ok()) return Annotate(made.status(), kTokenizer);
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"clean_up_tokenization_spaces", false}};
  const std::optional<int32_t> eos = (*made)->eos_id();
  ExportedTokenizer exported = {.files = std::move(carried),
                                .ids = SpecialTokenIds()};
  if (eos.has_value()) {
    exported.ids->eos = *eos;
    const json file = json::parse(bytes, nullptr, /*allow_exceptions=*/false);
    for (const json& token : file.value("added_tokens", json::array())) {
      if (token.value("id", -1) != *eos) continue;
      config["eos_token"] = token.value("content", "");
    }
  }
  exported.files.push_back({kConfig, Text(config)});
  return exported;
}

// With the carried files that are of no tokenizer.
void AddOthers(std::vector<CarriedFile> carried, ExportedTokenizer& exported) {
  for (CarriedFile& file : carried) {
    if (!IsTokenizerFile(file.name)) exported.files.push_back(std::move(file));
  }
}

}  // namespace

absl::StatusOr<ExportedTokenizer> ExportTokenizer(
    absl::string_view tokenizer, std::vector<CarriedFile> carried) {
  const std::string bytes = ContentOf(carried, kModel);
  const std::string described = ContentOf(carried, kTokenizer);
  if (TokenizerModelFile(tokenizer) == kTokenizer &&
      IsTokenizerModel(tokenizer, described) &&
      Find(carried, kConfig) == nullptr) {
    return OfTokenizerJson(tokenizer, described, std::move(carried));
  }
  if (BelongToTokens({.model = bytes,
                      .tokenizer = ContentOf(carried, kTokenizer),
                      .config = ContentOf(carried, kConfig)},
                     {.tokenizer = std::string(tokenizer), .model = bytes})) {
    return ExportedTokenizer{.files = std::move(carried), .ids = absl::nullopt};
  }
  ExportedTokenizer exported = {.files = {}, .ids = SpecialTokenIds()};
  if (tokenizer == "bytes") {
    exported = OfBytes();
  } else if (SentencePieceTokenizerName(bytes) == tokenizer) {
    const absl::StatusOr<SentencePieceModel> model =
        ParseSentencePieceModel(bytes);
    if (!model.ok()) return Annotate(model.status(), kModel);
    exported = OfSentencePiece(*model);
    exported.files.push_back({kModel, bytes});
  }
  AddOthers(std::move(carried), exported);
  return exported;
}

}  // namespace troupe
