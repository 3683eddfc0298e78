#include "storage/corpus/text_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "storage/corpus/check_corpus.h"

namespace troupe {
namespace {

constexpr size_t kReadBytes = 1 << 18;
constexpr size_t kUncutBytesMax = 64 << 20;
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsSpace(char c) { return c == ' ' || c == '\n'; }

}  // namespace

std::string FormatPosition(const CorpusPosition& position) {
  return absl::StrCat(position.file, " ", position.offset, " ", position.lines,
                      " ", position.skipped, " ", position.within ? 1 : 0, " ",
                      position.padding);
}

absl::StatusOr<CorpusPosition> ParsePosition(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  CorpusPosition at;
  int within = 0;
  if (parts.size() == 6 && absl::SimpleAtoi(parts[0], &at.file) &&
      absl::SimpleAtoi(parts[1], &at.offset) &&
      absl::SimpleAtoi(parts[2], &at.lines) &&
      absl::SimpleAtoi(parts[3], &at.skipped) &&
      absl::SimpleAtoi(parts[4], &within) &&
      absl::SimpleAtoi(parts[5], &at.padding)) {
    at.within = within != 0;
    return at;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is no position in a corpus"));
}

TextParts::TextParts(const std::vector<CorpusFile>& files,
                     const Tokenizer* tokenizer,
                     const TextPartsOptions& options,
                     const CorpusPosition& start)
    : files_(files), tokenizer_(tokenizer), options_(options), at_(start) {
  for (uint64_t i = 0; i < std::min<uint64_t>(at_.file, files_.size()); ++i) {
    taken_before_ += files_[i].size;
  }
}

uint64_t TextParts::taken() const {
  return taken_before_ + (source_ == nullptr ? 0 : source_->taken());
}

absl::Status TextParts::OpenFile() {
  ASSIGN_OR_RETURN(source_,
                   OpenByteSource({.path = file().path,
                                   .unpack = options_.unpack,
                                   .size = file().size,
                                   .modified_ns = file().modified_ns}));
  waiting_.clear();
  searched_ = 0;
  file_ends_ = false;
  // What was done before is read once more, and dropped.
  std::string dropped(kReadBytes, '\0');
  for (uint64_t left = at_.offset; left > 0;) {
    ASSIGN_OR_RETURN(
        const size_t got,
        source_->Read(dropped.data(), std::min<uint64_t>(left, kReadBytes)));
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(
          file().path, ": ends before byte ", at_.offset,
          ", up to which it was read before; remove the unfinished token file "
          "and begin again"));
    }
    left -= got;
  }
  if (at_.offset > 0 || !options_.unpack) return absl::OkStatus();
  if (file().is_stream()) RETURN_IF_ERROR(CheckStream());
  while (!file_ends_ && waiting_.size() < kByteOrderMark.size()) {
    RETURN_IF_ERROR(Fill());
  }
  if (!absl::StartsWith(waiting_, kByteOrderMark)) return absl::OkStatus();
  waiting_.erase(0, kByteOrderMark.size());
  at_.offset = kByteOrderMark.size();
  return absl::OkStatus();
}

// Files were looked at before.
absl::Status TextParts::CheckStream() {
  const size_t bytes = CheckedBytes(file().format);
  while (!file_ends_ && waiting_.size() < bytes) RETURN_IF_ERROR(Fill());
  const absl::string_view begin = absl::string_view(waiting_).substr(0, bytes);
  return CheckBeginning(file(), begin, file_ends_ && begin == waiting_);
}

absl::Status TextParts::Fill() {
  const size_t had = waiting_.size();
  waiting_.resize(had + kReadBytes);
  const absl::StatusOr<size_t> got =
      source_->Read(waiting_.data() + had, kReadBytes);
  waiting_.resize(had + (got.ok() ? *got : 0));
  RETURN_IF_ERROR(got.status());
  file_ends_ = *got == 0;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TextPart>> TextParts::Next() {
  while (at_.file < files_.size()) {
    if (source_ == nullptr) RETURN_IF_ERROR(OpenFile());
    const bool enough = waiting_.size() >= kReadBytes;
    if (!enough && !file_ends_) {
      RETURN_IF_ERROR(Fill());
      continue;
    }
    ASSIGN_OR_RETURN(const size_t bytes, Complete());
    if (bytes > 0 && !file_ends_) return Cut(bytes, /*at_end=*/false);
    if (!file_ends_) {
      RETURN_IF_ERROR(Fill());
      continue;
    }
    return Cut(waiting_.size(), /*at_end=*/true);
  }
  return std::nullopt;
}

absl::StatusOr<size_t> TextParts::Complete() {
  if (file().format != TextFormat::kText) return CompleteLines();
  const size_t bytes = CutOfText();
  if (bytes > 0 || file_ends_ || waiting_.size() <= kUncutBytesMax) {
    return bytes;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file().path, ": ", kUncutBytesMax,
      " bytes without a place to cut the text: they have no space and no "
      "line's end, or the pieces of tokenizer ",
      tokenizer_ == nullptr ? "" : tokenizer_->name(),
      " reach over each of them; break the text into lines, or use another "
      "tokenizer"));
}

size_t TextParts::CutOfText() {
  if (tokenizer_ != nullptr) return tokenizer_->CutPoint(waiting_, searched_);
  for (size_t at = waiting_.size(); at-- > 2;) {
    if (IsSpace(waiting_[at - 1]) && !IsSpace(waiting_[at - 2]) &&
        !IsSpace(waiting_[at])) {
      return at - 1;
    }
  }
  return 0;
}

absl::StatusOr<size_t> TextParts::CompleteLines() {
  const char* const text = waiting_.data();
  const void* const end =
      memrchr(text + searched_, '\n', waiting_.size() - searched_);
  searched_ = waiting_.size();
  if (end != nullptr) return static_cast<const char*>(end) - text + 1;
  if (waiting_.size() <= options_.line_bytes_max) return size_t{0};
  if (options_.skip_bad_lines) {
    RETURN_IF_ERROR(DropLine());
    return size_t{0};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file().path, ":", at_.lines + 1, ": the line has more than ",
      options_.line_bytes_max >> 20,
      " MiB, all of which would be one document; break it into shorter ones, "
      "raise --max-line-mib",
      file().format == TextFormat::kLines
          ? ", or do without --append-eos-per-line"
          : ", or leave such lines out with --skip-bad-lines"));
}

// Up to its end, which may be far.
absl::Status TextParts::DropLine() {
  ++at_.lines;
  ++at_.skipped;
  searched_ = 0;
  while (true) {
    const size_t end = waiting_.find('\n');
    const size_t dropped = end == std::string::npos ? waiting_.size() : end + 1;
    at_.offset += dropped;
    waiting_.erase(0, dropped);
    if (end != std::string::npos || file_ends_) return absl::OkStatus();
    RETURN_IF_ERROR(Fill());
  }
}

TextPart TextParts::Cut(size_t bytes, bool at_end) {
  TextPart part = {.text = waiting_.substr(0, bytes),
                   .file = &file(),
                   .first_line = at_.lines + 1};
  const bool is_text = file().format == TextFormat::kText;
  if (is_text) {
    part.begins = !at_.within;
    part.ends = at_end;
    at_.within = true;
  }
  waiting_.erase(0, bytes);
  searched_ = 0;
  at_.offset += bytes;
  at_.lines += std::count(part.text.begin(), part.text.end(), '\n');
  if (at_end) {
    taken_before_ += source_->taken();
    source_ = nullptr;
    at_ = {.file = at_.file + 1, .skipped = at_.skipped};
  }
  part.after = at_;
  return part;
}

}  // namespace troupe
