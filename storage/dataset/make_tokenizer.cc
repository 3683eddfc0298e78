#include "storage/dataset/make_tokenizer.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "storage/disk/new_file.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr uint64_t kModelBytesMax = uint64_t{256} << 20;

absl::StatusOr<std::unique_ptr<Tokenizer>> WithoutModel(absl::string_view) {
  return MakeBytesTokenizer();
}

struct TokenizerRow {
  absl::string_view kind;  // a name up to its ':'
  bool has_model;
  absl::StatusOr<std::unique_ptr<Tokenizer>> (*make)(absl::string_view model);
};

constexpr TokenizerRow kTable[] = {
    {"bytes", false, &WithoutModel},
    {"sentencepiece", true, &MakeSentencePieceTokenizer},
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
  if (row->has_model && !model.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("tokenizer ", name, " needs its model, which is missing"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                   row->make(row->has_model ? *model : ""));
  if (tokenizer->name() == name) return tokenizer;
  return absl::FailedPreconditionError(absl::StrCat(
      "the tokens were made by ", name, ", but the model that is there is ",
      tokenizer->name(), ": put the right one in its place"));
}

bool TokenizerHasModel(absl::string_view name) {
  const auto row = FindRow(name);
  return row.ok() && (*row)->has_model;
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
  if (!row->has_model) return MakeTokenizer(name);
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
