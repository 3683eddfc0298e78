#include "storage/dataset/tokenize_file.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/part_encoder.h"
#include "storage/dataset/token_file_writer.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr uint64_t kReadBytes = 1 << 18;
constexpr uint64_t kUncutBytesMax = 64 << 20;

// Takes the text as it is read, and writes the tokens of what is complete.
class Encoding {
 public:
  Encoding(const Tokenizer& tokenizer, const TokenizeFileOptions& options,
           TokenFileWriter& writer)
      : tokenizer_(tokenizer),
        options_(options),
        parts_(options.threads, [&writer](absl::Span<const int32_t> ids) {
          return writer.Append(ids);
        }) {}

  absl::Status Add(absl::string_view text) {
    waiting_.append(text.data(), text.size());
    const size_t bytes = Complete();
    if (bytes == 0 && waiting_.size() > kUncutBytesMax) return Uncut();
    return Encode(bytes);
  }

  absl::Status Finish() {
    RETURN_IF_ERROR(Encode(waiting_.size()));
    return parts_.Finish();
  }

 private:
  // How much of what waits may be encoded now.
  size_t Complete() {
    if (!options_.eos_per_line) {
      return tokenizer_.CutPoint(waiting_, searched_);
    }
    const size_t end = waiting_.rfind('\n');
    return end == std::string::npos ? 0 : end + 1;
  }

  absl::Status Uncut() const {
    if (options_.eos_per_line) {
      return absl::InvalidArgumentError(absl::StrCat(
          options_.text_path, ": a line has more than ", kUncutBytesMax,
          " bytes, all of which would be one document; break it into shorter "
          "lines, or do without --append-eos-per-line"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        options_.text_path, ": ", kUncutBytesMax,
        " bytes without a place to cut the text: they have no space and no "
        "line's end, or the pieces of tokenizer ",
        tokenizer_.name(),
        " reach over each of them; break the text into lines, or use another "
        "tokenizer"));
  }

  absl::Status Encode(size_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    const bool is_first = !begun_;
    begun_ = true;
    std::string part = waiting_.substr(0, bytes);
    waiting_.erase(0, bytes);
    searched_ = 0;
    return parts_.Add(
        std::move(part),
        [this, is_first](const std::string& text, std::vector<int32_t>& ids) {
          return Annotate(EncodePart(text, is_first, ids), options_.text_path);
        });
  }

  absl::Status EncodePart(const std::string& text, bool is_first,
                          std::vector<int32_t>& ids) const {
    if (options_.eos_per_line) return EncodeLines(text, ids);
    return is_first ? tokenizer_.Encode(text, ids)
                    : tokenizer_.EncodeLater(text, ids);
  }

  absl::Status EncodeLines(absl::string_view text,
                           std::vector<int32_t>& ids) const {
    while (!text.empty()) {
      absl::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      absl::ConsumeSuffix(&line, "\r");
      if (line.empty()) continue;
      RETURN_IF_ERROR(tokenizer_.Encode(line, ids));
      ids.push_back(*tokenizer_.eos_id());
    }
    return absl::OkStatus();
  }

  const Tokenizer& tokenizer_;
  const TokenizeFileOptions& options_;
  PartEncoder parts_;
  std::string waiting_;
  size_t searched_ = 0;  // bytes of it that have no place to cut
  bool begun_ = false;
};

}  // namespace

absl::StatusOr<TokenFileHeader> TokenizeFile(
    const Tokenizer& tokenizer, const TokenizeFileOptions& options) {
  if (options.eos_per_line && !tokenizer.eos_id().has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the tokenizer ", tokenizer.name(),
        " has no token that ends a document; use another, or do without "
        "--append-eos-per-line"));
  }
  ASSIGN_OR_RETURN(const PosixFile text,
                   PosixFile::Open(options.text_path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t bytes, text.Size());
  if (bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.text_path, ": is empty; there is no text in it"));
  }
  std::error_code none;  // where the token file is not there yet
  if (std::filesystem::equivalent(options.text_path, options.path, none)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.path,
                     ": is the text itself, which the token file would "
                     "replace; give another --out"));
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<TokenFileWriter> writer,
      TokenFileWriter::Create({.path = options.path,
                               .vocab_size = tokenizer.vocab_size(),
                               .tokenizer = tokenizer.name()}));
  Encoding encoding(tokenizer, options, *writer);
  std::string chunk;
  for (uint64_t at = 0; at < bytes; at += chunk.size()) {
    chunk.resize(std::min<uint64_t>(kReadBytes, bytes - at));
    RETURN_IF_ERROR(text.ReadAt(at, chunk.size(), chunk.data()));
    RETURN_IF_ERROR(encoding.Add(chunk));
    if (options.progress) {
      RETURN_IF_ERROR(options.progress(at + chunk.size(), bytes));
    }
  }
  RETURN_IF_ERROR(encoding.Finish());
  // Where the tokens are, what they mean is too. Should the machine go down
  // between the two, the model's checksum in the old tokens' name of their
  // tokenizer does not fit, and whoever reads them says so.
  if (options.model.has_value()) {
    RETURN_IF_ERROR(writer->Sync());
    RETURN_IF_ERROR(WriteTokenizerModel(options.path, *options.model));
  }
  return writer->Finish();
}

}  // namespace troupe
