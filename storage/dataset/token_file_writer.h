// Writes a token file of Troupe's as a stream, in bounded memory, so that it is
// there complete or not at all, and so that a writer that was killed can be
// continued.
//
// Until Finish all is in the folder <path>.partial:
//
//   source   of what the tokens are made, as the writer was told
//   tokens   the token file, with the tokens that it has so far
//   ends     the ends of its documents
//   counted  which tokens count, where it says so
//   state    what Save made durable: counts, checksums, the writer's position
//
// Finish puts the ends, the bits and the header into `tokens`, and renames it.
// <path>.partial.lock keeps two processes from writing the same file.
#ifndef TROUPE_STORAGE_DATASET_TOKEN_FILE_WRITER_H_
#define TROUPE_STORAGE_DATASET_TOKEN_FILE_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/dataset/troupe_file.h"
#include "storage/disk/file_lock.h"
#include "storage/engine/posix_file.h"

namespace troupe {

struct TokenFileWriterOptions {
  std::string path;  // replaced where it exists
  uint64_t vocab_size = 0;
  std::string tokenizer;  // 1 to 24 bytes
  // Of what the tokens are made, and how. A file that was begun with the same
  // is continued; empty: none is.
  std::string source = "";
  // It says which tokens count; then each Append does.
  bool says_what_counts = false;
  uint64_t packed_length = 0;  // token_layout.h; REQUIRES says_what_counts
};

class TokenFileWriter {
 public:
  // InvalidArgument for options that the format cannot hold.
  // FailedPrecondition where another process writes this file, or where
  // <path>.partial is a folder of another kind.
  static absl::StatusOr<std::unique_ptr<TokenFileWriter>> Create(
      const TokenFileWriterOptions& options);
  // Removes what was written, unless it is finished or a Save can be continued.
  ~TokenFileWriter();

  // Where the file that is continued was saved; empty: it begins anew.
  const std::string& position() const { return position_; }
  // Why one that was begun is not continued, for people; empty: there is none.
  const std::string& begun_anew() const { return begun_anew_; }
  // What would be continued after an end now.
  bool saved() const { return saved_; }
  const TokenFileHeader& header() const { return header_; }

  // InvalidArgument, with its number, for a token outside the vocabulary.
  absl::Status Append(absl::Span<const int32_t> tokens);
  // Says of each token whether it counts (0: no); the first one of a document
  // never does, as nothing comes before it. Requires says_what_counts and as
  // many.
  absl::Status Append(absl::Span<const int32_t> tokens,
                      absl::Span<const uint8_t> counts);
  // The tokens since the last end are a document. Nothing where there are none.
  absl::Status EndDocument();
  // A writer with the same source continues behind all that was appended, with
  // this position. Requires a source.
  absl::Status Save(absl::string_view position);
  // All that was appended is on the disk, but not under the file's name yet.
  absl::Status Sync();
  // Makes the file durable under its name. Call once.
  absl::StatusOr<TokenFileHeader> Finish();

 private:
  // A part of the file that grows.
  struct Tail {
    std::optional<PosixFile> file;
    uint64_t offset = 0;  // of the buffer
    std::string buffer;   // not written yet
    uint32_t crc32c = 0;  // of what was written
  };

  TokenFileWriter(const TokenFileWriterOptions& options, std::string target);
  absl::Status Open();
  absl::Status Begin();
  absl::Status OpenTails();
  // Sets what a Save said; an error says why it cannot be continued.
  absl::Status Continue();
  // Puts what a tail has written at `offset` of the token file, which moves.
  absl::Status AppendTail(const Tail& tail, uint64_t& offset);
  absl::Status AppendTails();
  absl::Status AddBit(bool counts);
  // Those of the last tokens, fewer than 8, that are in no byte yet.
  absl::Status WriteLastBits();
  static absl::Status Flush(Tail& tail);
  std::string InFolder(absl::string_view name) const;

  const TokenFileWriterOptions options_;
  const std::string target_;  // of the path, links followed
  const std::string folder_;
  std::optional<FileLock> lock_;
  TokenFileHeader header_;
  Tail tokens_;
  Tail ends_;
  Tail counted_;
  uint64_t last_end_ = 0;
  uint8_t last_bits_ = 0;  // of the last header_.token_count % 8 tokens
  std::string position_;
  std::string begun_anew_;
  bool is_ours_ = false;  // the folder
  bool saved_ = false;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TOKEN_FILE_WRITER_H_
