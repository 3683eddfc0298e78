#include "storage/dataset/open_tokenizer.h"

#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"

namespace troupe {
namespace {

// JSON begins with a brace, which a SentencePiece model never does.
bool IsJson(absl::string_view bytes) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(bytes), "{");
}

absl::StatusOr<OpenedTokenizer> Open(const std::string& path,
                                     absl::string_view config) {
  OpenedTokenizer opened;
  ASSIGN_OR_RETURN(opened.model, ReadTokenizerModel(path));
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      IsJson(opened.model) ? MakeHuggingFaceTokenizer(opened.model, config)
                           : MakeSentencePieceTokenizer(opened.model);
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), path);
  opened.tokenizer = *std::move(tokenizer);
  return opened;
}

}  // namespace

absl::StatusOr<OpenedTokenizer> OpenTokenizer(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (!fs::is_directory(path, none)) return Open(path, "");
  const auto file = [&](const char* name) {
    return absl::StrCat(path, "/", name);
  };
  if (fs::exists(file("tokenizer.json"), none)) {
    std::string config;
    if (fs::exists(file("tokenizer_config.json"), none)) {
      ASSIGN_OR_RETURN(config,
                       ReadTokenizerModel(file("tokenizer_config.json")));
    }
    return Open(file("tokenizer.json"), config);
  }
  if (fs::exists(file("tokenizer.model"), none)) {
    return Open(file("tokenizer.model"), "");
  }
  return absl::NotFoundError(
      absl::StrCat(path, ": has neither tokenizer.json nor tokenizer.model"));
}

}  // namespace troupe
