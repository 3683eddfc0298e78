#include "storage/dataset/make_tokenizer.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "storage/disk/new_file.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr uint64_t kModelBytesMax = uint64_t{256} << 20;

using TokenizerOr = absl::StatusOr<std::unique_ptr<Tokenizer>>;

TokenizerOr MakeBytes(absl::string_view, absl::string_view) {
  return MakeBytesTokenizer();
}

TokenizerOr MakeSentencePiece(absl::string_view model, absl::string_view) {
  return MakeSentencePieceTokenizer(model);
}

bool NamesBytes(absl::string_view name, absl::string_view) {
  return name == "bytes";
}

bool NamesSentencePiece(absl::string_view name, absl::string_view model) {
  return name == SentencePieceTokenizerName(model);
}

struct TokenizerRow {
  absl::string_view kind;        // a name up to its ':'
  absl::string_view model_file;  // by the name that others know; empty: none
  TokenizerOr (*make)(absl::string_view model, absl::string_view name);
  bool (*names)(absl::string_view name, absl::string_view model);
};

constexpr TokenizerRow kTable[] = {
    {"bytes", "", &MakeBytes, &NamesBytes},
    {"sentencepiece", "tokenizer.model", &MakeSentencePiece,
     &NamesSentencePiece},
    {"hf", "tokenizer.json", &MakeNamedHuggingFaceTokenizer,
     &IsHuggingFaceTokenizerOf},
};

absl::StatusOr<const TokenizerRow*> FindRow(absl::string_view name) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits(':', 1));
  for (const TokenizerRow& row : kTable) {
    if (row.kind == parts[0]) return &row;
  }
  const std::string kinds = absl::StrJoin(
      kTable, ", ", [](std::string* out, const TokenizerRow& row) {
        absl::StrAppend(out, row.kind);
      });
  return absl::InvalidArgumentError(
      absl::StrCat("unknown tokenizer \"", name, "\"; use ", kinds));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(
    absl::string_view name, const std::optional<std::string>& model) {
  ASSIGN_OR_RETURN(const TokenizerRow* const row, FindRow(name));
  const bool has_model = !row->model_file.empty();
  if (has_model && !model.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("tokenizer ", name, " needs its model, which is missing"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                   row->make(has_model ? *model : "", name));
  if (tokenizer->name() == name) return tokenizer;
  return absl::FailedPreconditionError(absl::StrCat(
      "the tokens were made by ", name, ", but the model that is there is ",
      tokenizer->name(), ": put the right one in its place"));
}

bool TokenizerHasModel(absl::string_view name) {
  return !TokenizerModelFile(name).empty();
}

std::string TokenizerModelFile(absl::string_view name) {
  const auto row = FindRow(name);
  return row.ok() ? std::string((*row)->model_file) : std::string();
}

bool IsTokenizerModel(absl::string_view name, absl::string_view model) {
  const auto row = FindRow(name);
  return row.ok() && !(*row)->model_file.empty() && (*row)->names(name, model);
}

std::string TokenizerModelPath(const std::string& tokens) {
  return tokens + ".model";
}

absl::StatusOr<std::string> ReadTokenizerModel(const std::string& path) {
  return ReadWholeFile(path, kModelBytesMax);
}

absl::Status WriteTokenizerModel(const std::string& tokens,
                                 absl::string_view model) {
  return ReplaceFile(TokenizerModelPath(tokens), model);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    absl::string_view name, const std::string& tokens) {
  ASSIGN_OR_RETURN(const TokenizerRow* const row, FindRow(name));
  if (row->model_file.empty()) return MakeTokenizer(name);
  const std::string path = TokenizerModelPath(tokens);
  absl::StatusOr<std::string> model = ReadTokenizerModel(path);
  if (absl::IsNotFound(model.status())) {
    return absl::NotFoundError(
        absl::StrCat(path, ": is missing; it is the model of the tokenizer ",
                     name, " that ", tokens, " was made by"));
  }
  RETURN_IF_ERROR(model.status());
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      MakeTokenizer(name, *std::move(model));
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), path);
  return tokenizer;
}

}  // namespace troupe
