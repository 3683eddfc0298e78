// Troupe's token files: a text as the model sees it, made once by
// `troupe data prepare` (token_file_writer.h) and then read piece by piece.
//
//   offset  bytes  field (all little-endian)
//        0      8  magic "TROUPETK"
//        8      4  version, 1
//       12      4  bytes per token: 1, 2 or 4
//       16      8  vocabulary size V; every token is below it
//       24      8  number of tokens, N
//       32      4  CRC-32C of the N * bytes-per-token bytes of tokens
//       36     24  tokenizer's name (tokenizer.h), padded with zero bytes
//       60      4  CRC-32C of bytes 0 to 59
//       64         the tokens, and nothing after them
//
// A token takes one byte where V <= 2^8, two where V <= 2^16, else four.
#ifndef TROUPE_STORAGE_DATASET_TROUPE_FILE_H_
#define TROUPE_STORAGE_DATASET_TROUPE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "storage/dataset/token_layout.h"

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

// Whether it begins with the magic.
bool IsTroupeFile(const std::string& path);
// Checks version, the header's checksum and the exact file size. DataLoss with
// the path and the offset.
absl::StatusOr<TokenLayout> ReadTroupeFile(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TROUPE_FILE_H_
