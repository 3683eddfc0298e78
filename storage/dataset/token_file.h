// Token files: a text as the model sees it, made once and then mapped into
// memory.
//
//   offset  bytes  field (all little-endian)
//        0      8  magic "TROUPETK"
//        8      4  version, 1
//       12      4  bytes per token: 1, 2 or 4
//       16      8  vocabulary size V; every token is below it
//       24      8  number of tokens, N
//       32      4  CRC-32C of the N * bytes-per-token bytes of tokens
//       36     24  tokenizer's name, padded with zero bytes
//       60      4  CRC-32C of bytes 0 to 59
//       64         the tokens, and nothing after them
//
// A token takes one byte where V <= 2^8, two where V <= 2^16, else four.
#ifndef TROUPE_STORAGE_DATASET_TOKEN_FILE_H_
#define TROUPE_STORAGE_DATASET_TOKEN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace troupe {

inline constexpr char kTokenFileMagic[] = "TROUPETK";
inline constexpr uint32_t kTokenFileVersion = 1;
inline constexpr uint64_t kTokenFileHeaderBytes = 64;
inline constexpr uint64_t kTokenizerNameBytesMax = 24;

struct TokenFileHeader {
  uint32_t bytes_per_token = 1;
  uint64_t vocab_size = 0;
  uint64_t token_count = 0;
  uint32_t data_crc32c = 0;
  std::string tokenizer;
};

// 1, 2 or 4. Requires 1 <= vocab_size <= 2^31.
uint32_t BytesPerToken(uint64_t vocab_size);
// The 64 bytes. Requires a tokenizer name of 1 to 24 bytes.
std::string FormatTokenFileHeader(const TokenFileHeader& header);

// A token file mapped into memory, read-only. Move-only; reads are thread-safe.
class TokenFile {
 public:
  // Checks magic, version, the header's checksum and the exact file size.
  // NotFound where there is no file, else DataLoss with the path and the
  // offset.
  static absl::StatusOr<TokenFile> Open(const std::string& path);

  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&& other) noexcept;
  ~TokenFile();

  const std::string& path() const { return path_; }
  const TokenFileHeader& header() const { return header_; }
  uint64_t size() const { return header_.token_count; }

  // Copies `count` tokens from number `first` to `out`. OutOfRange past the
  // end; DataLoss, with the offset, for a token that is not below the
  // vocabulary size.
  absl::Status Read(uint64_t first, uint64_t count, int32_t* out) const;

  // Reads it all: the data's checksum, and every token against the vocabulary.
  absl::Status Verify() const;

 private:
  TokenFile() = default;
  void Unmap();
  absl::Status BadToken(uint64_t index, uint64_t token) const;

  std::string path_;
  TokenFileHeader header_;
  const char* map_ = nullptr;  // the whole file
  uint64_t map_bytes_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TOKEN_FILE_H_
