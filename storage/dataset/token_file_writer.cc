#include "storage/dataset/token_file_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

void AppendToken(uint32_t token, uint32_t width, std::string& out) {
  char bytes[4];
  StoreLittleEndian<uint32_t>(token, bytes);
  out.append(bytes, width);
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
  ASSIGN_OR_RETURN(NewFile file, NewFile::Create(options.path));
  return std::unique_ptr<TokenFileWriter>(
      new TokenFileWriter(options.path, std::move(file),
                          {.bytes_per_token = BytesPerToken(options.vocab_size),
                           .vocab_size = options.vocab_size,
                           .tokenizer = options.tokenizer}));
}

TokenFileWriter::TokenFileWriter(std::string path, NewFile file,
                                 TokenFileHeader header)
    : path_(std::move(path)),
      file_(std::move(file)),
      header_(std::move(header)) {}

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

absl::Status TokenFileWriter::Sync() {
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(file_.WriteAt(0, FormatTokenFileHeader(header_)));
  return file_.Sync();
}

absl::StatusOr<TokenFileHeader> TokenFileWriter::Finish() {
  RETURN_IF_ERROR(Sync());
  RETURN_IF_ERROR(file_.Commit());
  return header_;
}

}  // namespace troupe
