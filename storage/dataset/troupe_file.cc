#include "storage/dataset/troupe_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

constexpr uint64_t kVocabSizeMax = uint64_t{1} << 31;
constexpr uint64_t kVersionAt = 8;
constexpr uint64_t kBytesPerTokenAt = 12;
constexpr uint64_t kVocabSizeAt = 16;
constexpr uint64_t kTokenCountAt = 24;
constexpr uint64_t kDataCrcAt = 32;
constexpr uint64_t kTokenizerAt = 36;
constexpr uint64_t kHeaderCrcAt = 60;

absl::Status BadHeader(uint64_t offset, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("offset ", offset, ": ", what));
}

// The errors lack only the path.
absl::StatusOr<TokenFileHeader> ParseHeader(const char* bytes) {
  const uint32_t version = LoadLittleEndian<uint32_t>(bytes + kVersionAt);
  if (version != kTokenFileVersion) {
    return BadHeader(kVersionAt,
                     absl::StrCat("version ", version, "; this program reads ",
                                  kTokenFileVersion));
  }
  const uint32_t want = Crc32c({bytes, kHeaderCrcAt});
  const uint32_t found = LoadLittleEndian<uint32_t>(bytes + kHeaderCrcAt);
  if (want != found) {
    return BadHeader(kHeaderCrcAt,
                     absl::StrFormat("the header's CRC-32C is %08x, computed "
                                     "%08x: it is damaged",
                                     found, want));
  }
  TokenFileHeader header;
  header.bytes_per_token = LoadLittleEndian<uint32_t>(bytes + kBytesPerTokenAt);
  header.vocab_size = LoadLittleEndian<uint64_t>(bytes + kVocabSizeAt);
  header.token_count = LoadLittleEndian<uint64_t>(bytes + kTokenCountAt);
  header.data_crc32c = LoadLittleEndian<uint32_t>(bytes + kDataCrcAt);
  const char* name = bytes + kTokenizerAt;
  header.tokenizer = std::string(name, strnlen(name, kTokenizerNameBytesMax));
  if (header.vocab_size < 1 || header.vocab_size > kVocabSizeMax) {
    return BadHeader(kVocabSizeAt,
                     absl::StrCat("vocabulary size ", header.vocab_size,
                                  "; it must be 1 to 2^31"));
  }
  if (header.bytes_per_token != BytesPerToken(header.vocab_size)) {
    return BadHeader(kBytesPerTokenAt,
                     absl::StrCat(header.bytes_per_token,
                                  " bytes per token, but a vocabulary of ",
                                  header.vocab_size, " takes ",
                                  BytesPerToken(header.vocab_size)));
  }
  if (header.token_count > uint64_t{1} << 56) {
    return BadHeader(kTokenCountAt, "more than 2^56 tokens");
  }
  return header;
}

}  // namespace

uint32_t BytesPerToken(uint64_t vocab_size) {
  CHECK(vocab_size >= 1 && vocab_size <= kVocabSizeMax) << vocab_size;
  if (vocab_size <= uint64_t{1} << 8) return 1;
  return vocab_size <= uint64_t{1} << 16 ? 2 : 4;
}

std::string FormatTokenFileHeader(const TokenFileHeader& header) {
  CHECK(!header.tokenizer.empty() &&
        header.tokenizer.size() <= kTokenizerNameBytesMax)
      << header.tokenizer;
  std::string bytes(kTokenFileHeaderBytes, '\0');
  char* to = bytes.data();
  memcpy(to, kTokenFileMagic, kVersionAt);
  StoreLittleEndian<uint32_t>(kTokenFileVersion, to + kVersionAt);
  StoreLittleEndian<uint32_t>(header.bytes_per_token, to + kBytesPerTokenAt);
  StoreLittleEndian<uint64_t>(header.vocab_size, to + kVocabSizeAt);
  StoreLittleEndian<uint64_t>(header.token_count, to + kTokenCountAt);
  StoreLittleEndian<uint32_t>(header.data_crc32c, to + kDataCrcAt);
  memcpy(to + kTokenizerAt, header.tokenizer.data(), header.tokenizer.size());
  StoreLittleEndian<uint32_t>(Crc32c({to, kHeaderCrcAt}), to + kHeaderCrcAt);
  return bytes;
}

bool IsTroupeFile(const std::string& path) {
  return FirstBytes(path, kVersionAt) == kTokenFileMagic;
}

absl::StatusOr<TokenLayout> ReadTroupeFile(const std::string& path) {
  TokenLayout layout{.format = "troupe"};
  ASSIGN_OR_RETURN(layout.data, DataFile::Open(path));
  const uint64_t bytes = layout.data->size();
  if (bytes < kTokenFileHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": offset ", bytes, ": the file ends inside its ",
                     kTokenFileHeaderBytes, " byte header"));
  }
  char head[kTokenFileHeaderBytes];
  RETURN_IF_ERROR(layout.data->Read(0, sizeof(head), head));
  absl::StatusOr<TokenFileHeader> header = ParseHeader(head);
  if (!header.ok()) return Annotate(header.status(), path);
  const uint64_t want =
      kTokenFileHeaderBytes + header->token_count * header->bytes_per_token;
  if (bytes != want) {
    return absl::DataLossError(absl::StrCat(
        path, ": offset ", std::min(bytes, want), ": the file has ", bytes,
        " bytes, its header says ", want,
        bytes < want ? ": it is truncated" : ": something follows the tokens"));
  }
  layout.type = {.bytes = header->bytes_per_token};
  layout.token_count = header->token_count;
  if (layout.token_count > 0) layout.runs = {{0, kTokenFileHeaderBytes}};
  layout.vocab_size = header->vocab_size;
  layout.tokenizer = std::move(header->tokenizer);
  layout.data_crc32c = header->data_crc32c;
  return layout;
}

}  // namespace troupe
