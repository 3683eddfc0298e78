#include "storage/dataset/token_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/engine/errno_status.h"
#include "storage/engine/little_endian.h"
#include "storage/engine/posix_file.h"

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
  if (memcmp(bytes, kTokenFileMagic, kVersionAt) != 0) {
    return BadHeader(0,
                     "no token file (its first 8 bytes are not TROUPETK); "
                     "make one with `troupe data prepare`");
  }
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

uint32_t TokenAt(const char* at, uint32_t bytes_per_token) {
  switch (bytes_per_token) {
    case 1:
      return LoadLittleEndian<uint8_t>(at);
    case 2:
      return LoadLittleEndian<uint16_t>(at);
    default:
      return LoadLittleEndian<uint32_t>(at);
  }
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

absl::StatusOr<TokenFile> TokenFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const PosixFile file, PosixFile::Open(path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  if (bytes < kTokenFileHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": offset ", bytes, ": the file ends inside its ",
                     kTokenFileHeaderBytes, " byte header"));
  }
  TokenFile opened;
  opened.path_ = path;
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (map == MAP_FAILED) {
    return ErrnoStatus(errno, absl::StrCat(path, ": mmap"));
  }
  opened.map_ = static_cast<const char*>(map);
  opened.map_bytes_ = bytes;
  absl::StatusOr<TokenFileHeader> header = ParseHeader(opened.map_);
  if (!header.ok()) return Annotate(header.status(), path);
  opened.header_ = *std::move(header);
  const uint64_t want =
      kTokenFileHeaderBytes +
      opened.header_.token_count * opened.header_.bytes_per_token;
  if (bytes != want) {
    return absl::DataLossError(absl::StrCat(
        path, ": offset ", std::min(bytes, want), ": the file has ", bytes,
        " bytes, its header says ", want,
        bytes < want ? ": it is truncated" : ": something follows the tokens"));
  }
  return opened;
}

TokenFile::TokenFile(TokenFile&& other) noexcept { *this = std::move(other); }

TokenFile& TokenFile::operator=(TokenFile&& other) noexcept {
  if (this == &other) return *this;
  Unmap();
  path_ = std::move(other.path_);
  header_ = std::move(other.header_);
  map_ = std::exchange(other.map_, nullptr);
  map_bytes_ = std::exchange(other.map_bytes_, 0);
  return *this;
}

TokenFile::~TokenFile() { Unmap(); }

void TokenFile::Unmap() {
  if (map_ == nullptr) return;
  CHECK_EQ(munmap(const_cast<char*>(map_), map_bytes_), 0);
  map_ = nullptr;
}

absl::Status TokenFile::BadToken(uint64_t index, uint64_t token) const {
  return absl::DataLossError(absl::StrCat(
      path_, ": offset ",
      kTokenFileHeaderBytes + index * header_.bytes_per_token, ": token ",
      index, " is ", token, ", the vocabulary has ", header_.vocab_size));
}

absl::Status TokenFile::Read(uint64_t first, uint64_t count,
                             int32_t* out) const {
  if (first > size() || count > size() - first) {
    return absl::OutOfRangeError(absl::StrCat(path_, ": has ", size(),
                                              " tokens, asked for ", count,
                                              " from ", first));
  }
  const uint32_t width = header_.bytes_per_token;
  const char* from = map_ + kTokenFileHeaderBytes + first * width;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t token = TokenAt(from + i * width, width);
    if (token >= header_.vocab_size) return BadToken(first + i, token);
    out[i] = static_cast<int32_t>(token);
  }
  return absl::OkStatus();
}

absl::Status TokenFile::Verify() const {
  const uint32_t width = header_.bytes_per_token;
  const char* data = map_ + kTokenFileHeaderBytes;
  for (uint64_t i = 0; i < size(); ++i) {
    const uint32_t token = TokenAt(data + i * width, width);
    if (token >= header_.vocab_size) return BadToken(i, token);
  }
  const uint32_t crc = Crc32c({data, size() * width});
  if (crc == header_.data_crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s: offset %d: the tokens' CRC-32C is %08x, the header says %08x: they "
      "are damaged; prepare the file again",
      path_, kTokenFileHeaderBytes, crc, header_.data_crc32c));
}

}  // namespace troupe
