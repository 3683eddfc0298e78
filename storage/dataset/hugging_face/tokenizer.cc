#include "storage/dataset/hugging_face/tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/dataset/hugging_face/description.h"
#include "storage/dataset/hugging_face/encoder.h"

namespace troupe {
namespace {

constexpr absl::string_view kKind = "hf";
constexpr absl::string_view kNoEnd = "none";

// "hf:1a2b3c4d:"
std::string NamePrefix(absl::string_view json) {
  return absl::StrFormat("%s:%08x:", kKind, Crc32c(json));
}

class HuggingFaceTokenizer final : public Tokenizer {
 public:
  HuggingFaceTokenizer(std::string prefix, std::unique_ptr<Encoder> encoder)
      : prefix_(std::move(prefix)), encoder_(std::move(encoder)) {
    const TokenizerDescription& description = encoder_->description();
    texts_ = description.model->vocabulary().texts();
    for (const AddedToken& token : description.added) {
      if (static_cast<size_t>(token.id) >= texts_.size()) {
        texts_.resize(token.id + 1);
      }
      texts_[token.id] = token.content;
      // The library skips them by their content.
      if (token.special) texts_[token.id].clear();
    }
  }

  // InvalidArgument for an id that it does not have.
  absl::Status SetEos(std::optional<int32_t> id) {
    if (id.has_value() &&
        (*id < 0 || static_cast<size_t>(*id) >= texts_.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the tokenizer has no token ", *id, ", which would end a document"));
    }
    eos_id_ = id;
    return absl::OkStatus();
  }

  std::optional<int32_t> IdOf(absl::string_view content) const {
    for (const AddedToken& token : encoder_->description().added) {
      if (token.content == content) return token.id;
    }
    const int32_t id =
        encoder_->description().model->vocabulary().IdOf(content);
    if (id == kNoToken) return std::nullopt;
    return id;
  }

  std::optional<int32_t> KnownEnd() const {
    constexpr absl::string_view kNames[] = {"<|endoftext|>", "<|end_of_text|>",
                                            "</s>", "<｜end▁of▁sentence｜>",
                                            "<eos>"};
    for (const absl::string_view name : kNames) {
      for (const AddedToken& token : encoder_->description().added) {
        if (token.content == name) return token.id;
      }
    }
    return std::nullopt;
  }

  std::string name() const override {
    return absl::StrCat(prefix_, eos_id_.has_value() ? absl::StrCat(*eos_id_)
                                                     : std::string(kNoEnd));
  }
  uint64_t vocab_size() const override { return texts_.size(); }
  std::optional<int32_t> eos_id() const override { return eos_id_; }

  absl::Status Encode(absl::string_view text,
                      std::vector<int32_t>& ids) const override {
    return encoder_->Encode(text, /*continues=*/false, ids);
  }
  absl::Status EncodeLater(absl::string_view text,
                           std::vector<int32_t>& ids) const override {
    return encoder_->Encode(text, /*continues=*/true, ids);
  }
  size_t CutPoint(absl::string_view text, size_t& searched) const override {
    return encoder_->CutPoint(text, searched);
  }

  absl::StatusOr<std::string> TokenText(int32_t id) const override {
    RETURN_IF_ERROR(CheckId(id));
    if (texts_[id].empty()) return std::string();
    return encoder_->description().decoder.Within(texts_[id]);
  }

  absl::StatusOr<std::string> Decode(
      absl::Span<const int32_t> ids) const override {
    const TokenDecoder& decoder = encoder_->description().decoder;
    std::string text;
    bool is_first = true;
    for (const int32_t id : ids) {
      RETURN_IF_ERROR(CheckId(id));
      if (texts_[id].empty()) continue;
      text += is_first ? decoder.First(texts_[id]) : decoder.Within(texts_[id]);
      is_first = false;
    }
    absl::string_view rest = text;
    for (int64_t i = 0; i < decoder.stripped_max(); ++i) {
      if (!absl::ConsumePrefix(&rest, decoder.stripped())) break;
    }
    return std::string(rest);
  }

 private:
  absl::Status CheckId(int32_t id) const {
    if (id >= 0 && static_cast<size_t>(id) < texts_.size()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer ", name(), ": id ", id, " is not within 0 to ",
                     static_cast<int64_t>(texts_.size()) - 1));
  }

  const std::string prefix_;
  const std::unique_ptr<Encoder> encoder_;
  // By id, as the vocabulary writes it; empty where a token stands for nothing.
  std::vector<std::string> texts_;
  std::optional<int32_t> eos_id_;
};

absl::StatusOr<std::unique_ptr<HuggingFaceTokenizer>> Make(
    absl::string_view json) {
  ASSIGN_OR_RETURN(TokenizerDescription description,
                   ParseTokenizerDescription(json));
  ASSIGN_OR_RETURN(std::unique_ptr<Encoder> encoder,
                   Encoder::Create(std::move(description)));
  return std::make_unique<HuggingFaceTokenizer>(NamePrefix(json),
                                                std::move(encoder));
}

// eos_token of a tokenizer_config.json: a text, or an object with its content;
// empty where it says none.
absl::StatusOr<std::string> EndOf(absl::string_view config) {
  if (config.empty()) return std::string();
  ASSIGN_OR_RETURN(const nlohmann::json file, ParsePythonJsonObject(config));
  const nlohmann::json token = file.value("eos_token", nlohmann::json());
  if (token.is_null()) return std::string();
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") &&
      token["content"].is_string()) {
    return token["content"].get<std::string>();
  }
  return absl::InvalidArgumentError(
      "eos_token: must be a text, or an object with \"content\"");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeHuggingFaceTokenizer(
    absl::string_view json, absl::string_view config) {
  ASSIGN_OR_RETURN(std::unique_ptr<HuggingFaceTokenizer> tokenizer, Make(json));
  const absl::StatusOr<std::string> end = EndOf(config);
  if (!end.ok()) return Annotate(end.status(), "tokenizer_config.json");
  std::optional<int32_t> id = tokenizer->KnownEnd();
  if (!end->empty()) {
    id = tokenizer->IdOf(*end);
    if (!id.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer_config.json: eos_token: \"", *end,
                       "\" is not a token of tokenizer.json"));
    }
  }
  RETURN_IF_ERROR(tokenizer->SetEos(id));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeNamedHuggingFaceTokenizer(
    absl::string_view json, absl::string_view name) {
  ASSIGN_OR_RETURN(std::unique_ptr<HuggingFaceTokenizer> tokenizer, Make(json));
  const std::vector<absl::string_view> parts = absl::StrSplit(name, ':');
  std::optional<int32_t> id;
  if (parts.size() == 3 && parts[2] != kNoEnd) {
    int32_t number = 0;
    if (!absl::SimpleAtoi(parts[2], &number)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tokenizer \"", name, "\": \"", parts[2], "\" is no id"));
    }
    id = number;
  }
  RETURN_IF_ERROR(tokenizer->SetEos(id));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

bool IsHuggingFaceTokenizerOf(absl::string_view name, absl::string_view json) {
  return absl::ConsumePrefix(&name, NamePrefix(json));
}

}  // namespace troupe
