// Writes a token file of Troupe's as a stream, in bounded memory, so that it is
// there whole or not at all (storage/disk/new_file.h).
#ifndef TROUPE_STORAGE_DATASET_TOKEN_FILE_WRITER_H_
#define TROUPE_STORAGE_DATASET_TOKEN_FILE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/dataset/troupe_file.h"
#include "storage/disk/new_file.h"

namespace troupe {

struct TokenFileWriterOptions {
  std::string path;  // replaced where it exists
  uint64_t vocab_size = 0;
  std::string tokenizer;  // 1 to 24 bytes
};

class TokenFileWriter {
 public:
  // InvalidArgument for options that the format cannot hold.
  static absl::StatusOr<std::unique_ptr<TokenFileWriter>> Create(
      const TokenFileWriterOptions& options);

  // InvalidArgument, with its number, for a token outside the vocabulary.
  absl::Status Append(absl::Span<const int32_t> tokens);
  // All that was appended is on the disk, but not under the file's name yet.
  absl::Status Sync();
  // Makes the file durable under its name. Call once.
  absl::StatusOr<TokenFileHeader> Finish();

 private:
  TokenFileWriter(std::string path, NewFile file, TokenFileHeader header);
  absl::Status Flush();

  const std::string path_;
  NewFile file_;
  TokenFileHeader header_;
  std::string buffer_;  // encoded tokens that are not yet written
  uint64_t offset_ = kTokenFileHeaderBytes;  // of the buffer in the file
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TOKEN_FILE_WRITER_H_
