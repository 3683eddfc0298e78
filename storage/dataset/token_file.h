// A dataset as one stream of token ids, read as they are needed, whatever the
// format of its file: Troupe's own (troupe_file.h), Megatron-LM's .bin with
// .idx (megatron_file.h) or llm.c's .bin (llmc_file.h). Formats are told apart
// by content; token_file.cc lists them in one table, and a new one is one more
// row there and a file of its own.
//
//   ASSIGN_OR_RETURN(TokenFile file,
//                    TokenFile::Open("data.idx", {.vocab_size = 32000}));
//   RETURN_IF_ERROR(file.Read(first, count, ids));
#ifndef TROUPE_STORAGE_DATASET_TOKEN_FILE_H_
#define TROUPE_STORAGE_DATASET_TOKEN_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/dataset/token_layout.h"

namespace troupe {

struct TokenFileOptions {
  // Ids must be below it, and below what the file itself says; 0: any that an
  // int32 holds. A model's vocabulary.
  uint64_t vocab_size = 0;
};

// Move-only; reads are thread-safe.
class TokenFile {
 public:
  // NotFound where there is no file; DataLoss, with the path and the offset,
  // where it is of no known format, truncated or contradicts itself; the other
  // errors of its format. Reads no ids yet.
  static absl::StatusOr<TokenFile> Open(const std::string& path,
                                        const TokenFileOptions& options = {});

  const std::string& path() const { return path_; }  // as it was given
  const TokenLayout& layout() const { return layout_; }
  uint64_t size() const { return layout_.token_count; }

  // What tells these tokens from others, as a line for people: format, number
  // of tokens, and a digest: the checksum that the format has, else one of
  // pieces that are spread over the file, 256 KiB of them at most. The same for
  // a copy at another place.
  const std::string& identity() const { return identity_; }

  // Copies `count` tokens from number `first` to `out`. OutOfRange past the
  // end; DataLoss, with file and offset, for an id outside the vocabulary, and
  // where the file has shrunk; errors of the disk as they are.
  absl::Status Read(uint64_t first, uint64_t count, int32_t* out) const;

  // Whether it says where its documents end.
  bool has_document_ends() const { return layout_.document_ends.has_value(); }
  // Where documents end within the `count` tokens from number `first`: each the
  // number of the token behind a document's last one, above first and at most
  // first + count, ascending. Unimplemented where the file does not say where
  // its documents end; OutOfRange past its end; DataLoss where they do not
  // ascend.
  absl::StatusOr<std::vector<uint64_t>> DocumentEnds(uint64_t first,
                                                     uint64_t count) const;

  // Whether it says which tokens count; else all do.
  bool has_counted() const { return layout_.counted.has_value(); }
  // For each of the `count` tokens from number `first` whether it counts.
  // OutOfRange past the end; errors of the disk as they are.
  absl::Status ReadCounted(uint64_t first, uint64_t count, bool* out) const;
  // How many of them count.
  absl::StatusOr<uint64_t> CountCounted(uint64_t first, uint64_t count) const;

  // Whether the tokens, and which of them count, have the checksums of their
  // header: reads them all, or until `go_on` says false, and then says OK. OK
  // where the format has none. DataLoss names the file.
  absl::Status CheckSum(const std::function<bool()>& go_on) const;

  // Reads it all: every id against the vocabulary, the data's checksums where
  // the format has them, and the ends of documents.
  absl::Status Verify() const;

 private:
  TokenFile(std::string path, TokenLayout layout, uint64_t vocab_size)
      : path_(std::move(path)),
        layout_(std::move(layout)),
        vocab_size_(vocab_size) {}
  // OutOfRange, where they are not all there.
  absl::Status CheckWithin(uint64_t first, uint64_t count) const;
  // Those of `count` tokens that lie one after the other from `offset` on.
  absl::Status ReadRun(uint64_t first, uint64_t offset, uint64_t count,
                       int32_t* out) const;
  // Of the document with this number. Requires layout_.document_ends.
  absl::StatusOr<uint64_t> DocumentEnd(uint64_t document) const;
  absl::Status VerifyDocumentEnds() const;
  absl::Status CheckSumOfCounted(const std::function<bool()>& go_on) const;

  std::string path_;
  TokenLayout layout_;
  uint64_t vocab_size_;
  std::string identity_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TOKEN_FILE_H_
