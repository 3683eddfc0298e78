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
constexpr uint64_t kCountMax = uint64_t{1} << 56;
constexpr uint64_t kTroupeVersionAt = 8;
constexpr uint64_t kBytesPerTokenAt = 12;
constexpr uint64_t kVocabSizeAt = 16;
constexpr uint64_t kTroupeTokenCountAt = 24;
constexpr uint64_t kDataCrcAt = 32;
constexpr uint64_t kTokenizerAt = 36;
constexpr uint64_t kEndsCrcAt = 60;
constexpr uint64_t kDocumentsAt = 64;
constexpr uint64_t kCountedTokensAt = 72;
constexpr uint64_t kCountedCrcAt = 80;
constexpr uint64_t kSequenceLengthAt = 88;
constexpr uint64_t kEndBytes = 8;

// Where the header's own checksum stands, at its end; by version.
constexpr uint64_t HeaderCrcAt(uint32_t version) {
  return version == 1 ? 60 : 124;
}
constexpr uint64_t HeaderBytes(uint32_t version) {
  return HeaderCrcAt(version) + 4;
}

absl::Status BadHeader(uint64_t offset, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("offset ", offset, ": ", what));
}

absl::Status EndsWithinHeader(uint64_t bytes, uint64_t header_bytes) {
  return BadHeader(bytes, absl::StrCat("the file ends inside its ",
                                       header_bytes, " byte header"));
}

// The file's beginning, whose size is that of the header of its version. The
// errors here and below lack only the path.
absl::StatusOr<std::string> ReadHeader(const DataFile& file) {
  std::string bytes(kTroupeVersionAt + 4, '\0');
  if (file.size() < bytes.size()) {
    return EndsWithinHeader(file.size(), kTokenFileHeaderBytes);
  }
  RETURN_IF_ERROR(file.Read(0, bytes.size(), bytes.data()));
  const auto version =
      LoadLittleEndian<uint32_t>(bytes.data() + kTroupeVersionAt);
  if (version < 1 || version > kTokenFileVersion) {
    return BadHeader(
        kTroupeVersionAt,
        absl::StrCat("version ", version, "; this program reads up to version ",
                     kTokenFileVersion));
  }
  bytes.resize(HeaderBytes(version));
  if (file.size() < bytes.size()) {
    return EndsWithinHeader(file.size(), bytes.size());
  }
  RETURN_IF_ERROR(file.Read(0, bytes.size(), bytes.data()));
  const uint64_t crc_at = HeaderCrcAt(version);
  const uint32_t want = Crc32c({bytes.data(), crc_at});
  const auto found = LoadLittleEndian<uint32_t>(bytes.data() + crc_at);
  if (want == found) return bytes;
  return BadHeader(crc_at,
                   absl::StrFormat("the header's CRC-32C is %08x, computed "
                                   "%08x: it is damaged",
                                   found, want));
}

absl::Status CheckHeader(const TokenFileHeader& header);

absl::StatusOr<TokenFileHeader> ParseHeader(const std::string& bytes) {
  const char* const from = bytes.data();
  TokenFileHeader header;
  header.bytes_per_token = LoadLittleEndian<uint32_t>(from + kBytesPerTokenAt);
  header.vocab_size = LoadLittleEndian<uint64_t>(from + kVocabSizeAt);
  header.token_count = LoadLittleEndian<uint64_t>(from + kTroupeTokenCountAt);
  header.data_crc32c = LoadLittleEndian<uint32_t>(from + kDataCrcAt);
  const char* name = from + kTokenizerAt;
  header.tokenizer = std::string(name, strnlen(name, kTokenizerNameBytesMax));
  if (bytes.size() == kTokenFileHeaderBytes) {
    header.ends_crc32c = LoadLittleEndian<uint32_t>(from + kEndsCrcAt);
    header.documents = LoadLittleEndian<uint64_t>(from + kDocumentsAt);
  }
  if (LoadLittleEndian<uint32_t>(from + kTroupeVersionAt) >= 3) {
    header.counted = {
        .tokens = LoadLittleEndian<uint64_t>(from + kCountedTokensAt),
        .crc32c = LoadLittleEndian<uint32_t>(from + kCountedCrcAt),
        .sequence_length =
            LoadLittleEndian<uint64_t>(from + kSequenceLengthAt)};
  }
  RETURN_IF_ERROR(CheckHeader(header));
  return header;
}

absl::Status CheckHeader(const TokenFileHeader& header) {
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
  if (header.token_count > kCountMax) {
    return BadHeader(kTroupeTokenCountAt, "more than 2^56 tokens");
  }
  if (header.documents > header.token_count) {
    return BadHeader(kDocumentsAt, "more documents than tokens");
  }
  if (header.counted.has_value() &&
      header.counted->tokens > header.token_count) {
    return BadHeader(kCountedTokensAt, "more tokens that count than tokens");
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenLayout> LayoutOf(DataFile file) {
  ASSIGN_OR_RETURN(const std::string head, ReadHeader(file));
  ASSIGN_OR_RETURN(TokenFileHeader header, ParseHeader(head));
  TokenLayout layout{.format = "troupe"};
  const uint64_t tokens_end =
      head.size() + header.token_count * header.bytes_per_token;
  const bool has_ends = head.size() == kTokenFileHeaderBytes;
  const uint64_t want = has_ends ? TokenFileBytes(header) : tokens_end;
  if (file.size() != want) {
    return absl::DataLossError(
        absl::StrCat("offset ", std::min(file.size(), want), ": the file has ",
                     file.size(), " bytes, its header says ", want,
                     file.size() < want ? ": it is truncated"
                                        : ": something follows its end"));
  }
  layout.data = std::move(file);
  layout.type = {.bytes = header.bytes_per_token};
  layout.token_count = header.token_count;
  if (layout.token_count > 0) layout.runs = {{0, head.size()}};
  layout.vocab_size = header.vocab_size;
  layout.tokenizer = std::move(header.tokenizer);
  layout.data_crc32c = header.data_crc32c;
  layout.documents = header.documents;
  if (header.documents > 0) {
    layout.document_ends = {.offset = DocumentEndsOffset(header),
                            .crc32c = header.ends_crc32c};
  }
  if (header.counted.has_value()) {
    layout.counted = {.offset = CountedOffset(header),
                      .tokens = header.counted->tokens,
                      .crc32c = header.counted->crc32c};
    layout.packed_length = header.counted->sequence_length;
  }
  return layout;
}

}  // namespace

uint32_t BytesPerToken(uint64_t vocab_size) {
  CHECK(vocab_size >= 1 && vocab_size <= kVocabSizeMax) << vocab_size;
  if (vocab_size <= uint64_t{1} << 8) return 1;
  return vocab_size <= uint64_t{1} << 16 ? 2 : 4;
}

uint64_t DocumentEndsOffset(const TokenFileHeader& header) {
  const uint64_t tokens_end =
      kTokenFileHeaderBytes + header.token_count * header.bytes_per_token;
  return (tokens_end + kEndBytes - 1) / kEndBytes * kEndBytes;
}

uint64_t CountedOffset(const TokenFileHeader& header) {
  return DocumentEndsOffset(header) + header.documents * kEndBytes;
}

uint64_t TokenFileBytes(const TokenFileHeader& header) {
  return CountedOffset(header) +
         (header.counted.has_value() ? (header.token_count + 7) / 8 : 0);
}

std::string FormatTokenFileHeader(const TokenFileHeader& header) {
  CHECK(!header.tokenizer.empty() &&
        header.tokenizer.size() <= kTokenizerNameBytesMax)
      << header.tokenizer;
  std::string bytes(kTokenFileHeaderBytes, '\0');
  char* to = bytes.data();
  memcpy(to, kTokenFileMagic, kTroupeVersionAt);
  StoreLittleEndian<uint32_t>(header.counted.has_value() ? 3 : 2,
                              to + kTroupeVersionAt);
  StoreLittleEndian<uint32_t>(header.bytes_per_token, to + kBytesPerTokenAt);
  StoreLittleEndian<uint64_t>(header.vocab_size, to + kVocabSizeAt);
  StoreLittleEndian<uint64_t>(header.token_count, to + kTroupeTokenCountAt);
  StoreLittleEndian<uint32_t>(header.data_crc32c, to + kDataCrcAt);
  memcpy(to + kTokenizerAt, header.tokenizer.data(), header.tokenizer.size());
  StoreLittleEndian<uint32_t>(header.ends_crc32c, to + kEndsCrcAt);
  StoreLittleEndian<uint64_t>(header.documents, to + kDocumentsAt);
  if (header.counted.has_value()) {
    StoreLittleEndian<uint64_t>(header.counted->tokens, to + kCountedTokensAt);
    StoreLittleEndian<uint32_t>(header.counted->crc32c, to + kCountedCrcAt);
    StoreLittleEndian<uint64_t>(header.counted->sequence_length,
                                to + kSequenceLengthAt);
  }
  const uint64_t crc_at = HeaderCrcAt(kTokenFileVersion);
  StoreLittleEndian<uint32_t>(Crc32c({to, crc_at}), to + crc_at);
  return bytes;
}

bool IsTroupeFile(const std::string& path) {
  return FirstBytes(path, kTroupeVersionAt) == kTokenFileMagic;
}

absl::StatusOr<TokenLayout> ReadTroupeFile(const std::string& path) {
  ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  absl::StatusOr<TokenLayout> layout = LayoutOf(std::move(file));
  if (absl::IsDataLoss(layout.status())) {
    return Annotate(layout.status(), path);
  }
  return layout;
}

}  // namespace troupe
