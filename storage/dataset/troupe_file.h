// Troupe's token files: texts as the model sees them, made once by
// `troupe data prepare` (token_file_writer.h) and then read piece by piece.
//
//   offset  bytes  field (all little-endian)
//        0      8  magic "TROUPETK"
//        8      4  version: 2, or 3 where it says which tokens count
//       12      4  bytes per token: 1, 2 or 4
//       16      8  vocabulary size V; every token is below it
//       24      8  number of tokens, N
//       32      4  CRC-32C of the N * bytes-per-token bytes of tokens
//       36     24  tokenizer's name (tokenizer.h), padded with zero bytes
//       60      4  CRC-32C of the 8 D bytes of documents' ends
//       64      8  number of documents, D; 0: the file does not say
//       72      8  version 3: how many tokens count, C; else 0
//       80      4  version 3: CRC-32C of the bits behind the documents' ends
//       84      4  zeros
//       88      8  version 3: the sequence length for which records were
//       packed;
//                  0: they follow each other
//       96     28  zeros
//      124      4  CRC-32C of bytes 0 to 123
//      128         the tokens, then zeros up to the next multiple of 8
//             8 D  where each document ends: the number of the token behind its
//                  last one. They ascend, and the last one is N
//     (N + 7) / 8  version 3: a bit for each token, bit i mod 8 of byte i / 8
//                  for token i, then zeros. 1: it counts, so a model learns to
//                  predict it. The first token of a document never does
//
// A token takes one byte where V <= 2^8, two where V <= 2^16, else four. Where
// the tokenizer has a token that ends a document, it is each document's last.
//
// Version 1, which is read as well, has no documents: its header ends at byte
// 64, with the CRC-32C of bytes 0 to 59 in bytes 60 to 63, and nothing follows
// the tokens.
#ifndef TROUPE_STORAGE_DATASET_TROUPE_FILE_H_
#define TROUPE_STORAGE_DATASET_TROUPE_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/dataset/token_layout.h"

namespace troupe {

inline constexpr char kTokenFileMagic[] = "TROUPETK";
inline constexpr uint32_t kTokenFileVersion = 3;
inline constexpr uint64_t kTokenFileHeaderBytes = 128;
inline constexpr uint64_t kTokenizerNameBytesMax = 24;

// Which tokens count.
struct CountedHeader {
  uint64_t tokens = 0;
  uint32_t crc32c = 0;
  uint64_t sequence_length = 0;  // for which records were packed; 0: none
};

struct TokenFileHeader {
  uint32_t bytes_per_token = 1;
  uint64_t vocab_size = 0;
  uint64_t token_count = 0;
  uint32_t data_crc32c = 0;
  std::string tokenizer;
  uint64_t documents = 0;
  uint32_t ends_crc32c = 0;
  // None: all tokens count.
  std::optional<CountedHeader> counted = std::nullopt;
};

// 1, 2 or 4. Requires 1 <= vocab_size <= 2^31.
uint32_t BytesPerToken(uint64_t vocab_size);
// Where the ends of documents begin, then the bits, and where the file ends.
uint64_t DocumentEndsOffset(const TokenFileHeader& header);
uint64_t CountedOffset(const TokenFileHeader& header);
uint64_t TokenFileBytes(const TokenFileHeader& header);
// The 128 bytes. Requires a tokenizer name of 1 to 24 bytes.
std::string FormatTokenFileHeader(const TokenFileHeader& header);

// Whether it begins with the magic.
bool IsTroupeFile(const std::string& path);
// Checks version, the header's checksum and the exact file size. DataLoss with
// the path and the offset.
absl::StatusOr<TokenLayout> ReadTroupeFile(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TROUPE_FILE_H_
