#include "storage/dataset/token_file_writer.h"

#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/engine/errno_status.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

void AppendToken(uint32_t token, uint32_t width, std::string& out) {
  char bytes[4];
  StoreLittleEndian<uint32_t>(token, bytes);
  out.append(bytes, width);
}

// The directory in which the name of `path` is an entry.
std::string DirectoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFileWriter>> TokenFileWriter::Create(
    const TokenFileWriterOptions& options) {
  if (options.vocab_size < 1 || options.vocab_size > uint64_t{1} << 31) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.path, ": vocabulary size ", options.vocab_size,
                     "; it must be 1 to 2^31"));
  }
  if (options.tokenizer.empty() ||
      options.tokenizer.size() > kTokenizerNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.path, ": tokenizer name \"", options.tokenizer,
        "\"; it must have 1 to ", kTokenizerNameBytesMax, " bytes"));
  }
  ASSIGN_OR_RETURN(
      PosixFile file,
      PosixFile::Open(absl::StrCat(options.path, ".tmp-", getpid()),
                      IoMode::kCreate));
  return std::unique_ptr<TokenFileWriter>(
      new TokenFileWriter(options.path, std::move(file),
                          {.bytes_per_token = BytesPerToken(options.vocab_size),
                           .vocab_size = options.vocab_size,
                           .tokenizer = options.tokenizer}));
}

TokenFileWriter::TokenFileWriter(std::string path, PosixFile file,
                                 TokenFileHeader header)
    : path_(std::move(path)),
      file_(std::move(file)),
      header_(std::move(header)) {}

TokenFileWriter::~TokenFileWriter() {
  if (!renamed_) unlink(file_.path().c_str());
}

absl::Status TokenFileWriter::Append(absl::Span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    if (token < 0 || static_cast<uint64_t>(token) >= header_.vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": token number ", header_.token_count, " is ",
                       token, ", the vocabulary has ", header_.vocab_size));
    }
    AppendToken(static_cast<uint32_t>(token), header_.bytes_per_token, buffer_);
    ++header_.token_count;
    if (buffer_.size() >= kBufferBytes) RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

absl::Status TokenFileWriter::Flush() {
  header_.data_crc32c = ExtendCrc32c(header_.data_crc32c, buffer_);
  RETURN_IF_ERROR(file_.WriteAt(offset_, buffer_));
  offset_ += buffer_.size();
  buffer_.clear();
  return absl::OkStatus();
}

absl::StatusOr<TokenFileHeader> TokenFileWriter::Finish() {
  CHECK(!renamed_);
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(file_.WriteAt(0, FormatTokenFileHeader(header_)));
  RETURN_IF_ERROR(file_.Sync());
  if (rename(file_.path().c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno,
                       absl::StrCat(file_.path(), ": rename to ", path_));
  }
  renamed_ = true;
  RETURN_IF_ERROR(SyncDirectory(DirectoryOf(path_)));
  return header_;
}

}  // namespace troupe
