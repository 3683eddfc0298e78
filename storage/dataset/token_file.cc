#include "storage/dataset/token_file.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/dataset/llmc_file.h"
#include "storage/dataset/megatron_file.h"
#include "storage/dataset/troupe_file.h"
#include "storage/engine/little_endian.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr uint64_t kTokenVocabMax = uint64_t{1} << 31;
constexpr uint64_t kEndTokenBytes = 8;
constexpr uint64_t kEndsAtOnce = 64;         // of one read of documents' ends
constexpr uint64_t kVerifyTokens = 1 << 16;  // at once
constexpr size_t kTokenPieceBytes = 1 << 14;  // of one read of ids
constexpr size_t kChecksumBytes = 1 << 20;   // of one read for the checksum
// Of the digest of a file without a checksum.
constexpr uint64_t kDigestPieces = 64;
constexpr uint64_t kDigestPieceBytes = 4096;

// In the order in which a file is tried.
struct FormatRow {
  bool (*recognizes)(const std::string& path);
  absl::StatusOr<TokenLayout> (*read)(const std::string& path);
};
constexpr FormatRow kFormats[] = {
    {&IsTroupeFile, &ReadTroupeFile},
    {&IsMegatronFile, &ReadMegatronFile},
    {&IsLlmcFile, &ReadLlmcFile},
};

absl::StatusOr<TokenLayout> ReadLayout(const std::string& path) {
  for (const FormatRow& format : kFormats) {
    if (format.recognizes(path)) return format.read(path);
  }
  RETURN_IF_ERROR(PosixFile::Open(path, IoMode::kRead).status());
  return absl::DataLossError(absl::StrCat(
      path,
      ": offset 0: no token file: it begins neither with Troupe's magic "
      "(TROUPETK) nor with llm.c's, and no .idx of Megatron-LM (MMIDIDX) lies "
      "beside it; make one with `troupe data prepare`"));
}

// A negative id becomes a huge one.
template <typename Unsigned, typename Signed>
uint64_t WidenToken(const char* at, bool is_signed) {
  const Unsigned value = LoadLittleEndian<Unsigned>(at);
  if (!is_signed) return value;
  return static_cast<uint64_t>(
      static_cast<int64_t>(static_cast<Signed>(value)));
}

// Of pieces that are spread over the file, its first and last bytes among them,
// and of where its tokens lie.
absl::StatusOr<uint32_t> DigestOf(const TokenLayout& layout) {
  const uint64_t bytes = layout.data->size();
  const uint64_t piece = std::min(bytes, kDigestPieceBytes);
  const uint64_t last = bytes - piece;  // where the last piece begins
  const uint64_t pieces =
      piece == 0 ? 0 : std::min(kDigestPieces, (bytes + piece - 1) / piece);
  uint32_t digest = 0;
  char buffer[kDigestPieceBytes];
  for (uint64_t i = 0; i < pieces; ++i) {
    const uint64_t at = pieces == 1 ? 0 : last / (pieces - 1) * i;
    const uint64_t from = i + 1 == pieces ? last : at;
    RETURN_IF_ERROR(layout.data->Read(from, piece, buffer));
    digest = ExtendCrc32c(digest, {buffer, piece});
  }
  for (const TokenRun& run : layout.runs) {
    char numbers[16];
    StoreLittleEndian<uint64_t>(run.first_token, numbers);
    StoreLittleEndian<uint64_t>(run.offset, numbers + 8);
    digest = ExtendCrc32c(digest, {numbers, sizeof(numbers)});
  }
  return digest;
}

uint64_t OnesIn(char byte) {
  return static_cast<uint64_t>(
      __builtin_popcount(static_cast<unsigned char>(byte)));
}

absl::StatusOr<std::string> IdentityOf(const TokenLayout& layout) {
  uint32_t digest = 0;
  if (layout.data_crc32c.has_value()) {
    digest = *layout.data_crc32c;
  } else {
    ASSIGN_OR_RETURN(digest, DigestOf(layout));
  }
  std::string identity = absl::StrFormat(
      "%s, %d tokens of %d bytes, %s %08x", layout.format, layout.token_count,
      layout.type.bytes, layout.data_crc32c.has_value() ? "CRC-32C" : "digest",
      digest);
  if (layout.counted.has_value()) {
    absl::StrAppendFormat(&identity, ", of which %d count, CRC-32C %08x",
                          layout.counted->tokens, layout.counted->crc32c);
  }
  return identity;
}

uint64_t TokenAt(const char* at, const TokenType& type) {
  switch (type.bytes) {
    case 1:
      return WidenToken<uint8_t, int8_t>(at, type.is_signed);
    case 2:
      return WidenToken<uint16_t, int16_t>(at, type.is_signed);
    case 4:
      return WidenToken<uint32_t, int32_t>(at, type.is_signed);
    default:
      return WidenToken<uint64_t, int64_t>(at, type.is_signed);
  }
}

}  // namespace

absl::StatusOr<TokenFile> TokenFile::Open(const std::string& path,
                                          const TokenFileOptions& options) {
  ASSIGN_OR_RETURN(TokenLayout layout, ReadLayout(path));
  uint64_t vocab_size = kTokenVocabMax;
  for (const uint64_t bound : {options.vocab_size, layout.vocab_size}) {
    if (bound != 0) vocab_size = std::min(vocab_size, bound);
  }
  TokenFile file(path, std::move(layout), vocab_size);
  ASSIGN_OR_RETURN(file.identity_, IdentityOf(file.layout_));
  return file;
}

absl::Status TokenFile::ReadRun(uint64_t first, uint64_t offset, uint64_t count,
                                int32_t* out) const {
  char piece[kTokenPieceBytes];
  const uint64_t width = layout_.type.bytes;
  const uint64_t at_once = sizeof(piece) / width;
  for (uint64_t done = 0; done < count;) {
    const uint64_t n = std::min(at_once, count - done);
    const uint64_t at = offset + done * width;
    RETURN_IF_ERROR(layout_.data->Read(at, n * width, piece));
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t id = TokenAt(piece + i * width, layout_.type);
      if (id >= vocab_size_) {
        return absl::DataLossError(absl::StrCat(
            layout_.data->path(), ": offset ", at + i * width, ": token ",
            first + done + i, " is ", static_cast<int64_t>(id),
            ", the vocabulary has ", vocab_size_));
      }
      *out++ = static_cast<int32_t>(id);
    }
    done += n;
  }
  return absl::OkStatus();
}

absl::Status TokenFile::Read(uint64_t first, uint64_t count,
                             int32_t* out) const {
  RETURN_IF_ERROR(CheckWithin(first, count));
  const std::vector<TokenRun>& runs = layout_.runs;
  const uint64_t end = first + count;
  // The run that holds `first` is the last that does not begin after it.
  auto run = std::upper_bound(
      runs.begin(), runs.end(), first,
      [](uint64_t token, const TokenRun& r) { return token < r.first_token; });
  for (uint64_t token = first; token < end; ++run) {
    const TokenRun& here = *(run - 1);
    const uint64_t stop =
        run == runs.end() ? end : std::min(end, run->first_token);
    const uint64_t offset =
        here.offset + (token - here.first_token) * layout_.type.bytes;
    RETURN_IF_ERROR(ReadRun(token, offset, stop - token, out));
    out += stop - token;
    token = stop;
  }
  return absl::OkStatus();
}

absl::Status TokenFile::CheckSum(const std::function<bool()>& go_on) const {
  if (!layout_.data_crc32c.has_value() || layout_.runs.size() > 1) {
    return absl::OkStatus();
  }
  const uint64_t begin = layout_.runs.empty() ? 0 : layout_.runs[0].offset;
  const uint64_t end = begin + size() * layout_.type.bytes;
  std::string chunk(kChecksumBytes, '\0');
  uint32_t crc = 0;
  for (uint64_t at = begin; at < end; at += chunk.size()) {
    if (!go_on()) return absl::OkStatus();
    chunk.resize(std::min<uint64_t>(chunk.size(), end - at));
    RETURN_IF_ERROR(layout_.data->Read(at, chunk.size(), chunk.data()));
    crc = ExtendCrc32c(crc, chunk);
  }
  if (crc == *layout_.data_crc32c) return CheckSumOfCounted(go_on);
  return absl::DataLossError(absl::StrFormat(
      "%s: offset %d: the tokens' CRC-32C is %08x, the header says %08x: they "
      "are damaged; prepare the file again",
      path_, begin, crc, *layout_.data_crc32c));
}

absl::Status TokenFile::CheckSumOfCounted(
    const std::function<bool()>& go_on) const {
  if (!has_counted()) return absl::OkStatus();
  const CountedBits& bits = *layout_.counted;
  const uint64_t bytes = (size() + 7) / 8;
  std::string chunk(kChecksumBytes, '\0');
  uint32_t crc = 0;
  uint64_t ones = 0;
  for (uint64_t done = 0; done < bytes; done += chunk.size()) {
    if (!go_on()) return absl::OkStatus();
    chunk.resize(std::min<uint64_t>(chunk.size(), bytes - done));
    RETURN_IF_ERROR(
        layout_.data->Read(bits.offset + done, chunk.size(), chunk.data()));
    crc = ExtendCrc32c(crc, chunk);
    for (const char byte : chunk) ones += OnesIn(byte);
  }
  if (crc == bits.crc32c && ones == bits.tokens) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s: offset %d: the bits that say which tokens count have CRC-32C %08x, "
      "the header says %08x: they are damaged; prepare the file again",
      path_, bits.offset, crc, bits.crc32c));
}

absl::Status TokenFile::ReadCounted(uint64_t first, uint64_t count,
                                    bool* out) const {
  RETURN_IF_ERROR(CheckWithin(first, count));
  if (!has_counted()) {
    std::fill_n(out, count, true);
    return absl::OkStatus();
  }
  char piece[kTokenPieceBytes];
  for (uint64_t at = first; at < first + count;) {
    const uint64_t byte = at / 8;
    const uint64_t bytes =
        std::min<uint64_t>(sizeof(piece), (first + count + 7) / 8 - byte);
    RETURN_IF_ERROR(
        layout_.data->Read(layout_.counted->offset + byte, bytes, piece));
    const uint64_t end = std::min(first + count, (byte + bytes) * 8);
    for (; at < end; ++at) *out++ = piece[at / 8 - byte] >> at % 8 & 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> TokenFile::CountCounted(uint64_t first,
                                                 uint64_t count) const {
  constexpr uint64_t kAtOnce = 4096;
  bool counts[kAtOnce];
  uint64_t ones = 0;
  for (uint64_t done = 0; done < count; done += kAtOnce) {
    const uint64_t here = std::min(kAtOnce, count - done);
    RETURN_IF_ERROR(ReadCounted(first + done, here, counts));
    ones += static_cast<uint64_t>(std::count(counts, counts + here, true));
  }
  return ones;
}

absl::Status TokenFile::CheckWithin(uint64_t first, uint64_t count) const {
  if (first <= size() && count <= size() - first) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      path_, ": has ", size(), " tokens, asked for ", count, " from ", first));
}

absl::StatusOr<uint64_t> TokenFile::DocumentEnd(uint64_t document) const {
  char bytes[kEndTokenBytes];
  RETURN_IF_ERROR(layout_.data->Read(
      layout_.document_ends->offset + document * kEndTokenBytes, kEndTokenBytes,
      bytes));
  return LoadLittleEndian<uint64_t>(bytes);
}

absl::StatusOr<std::vector<uint64_t>> TokenFile::DocumentEnds(
    uint64_t first, uint64_t count) const {
  if (!layout_.document_ends.has_value()) {
    return absl::UnimplementedError(absl::StrCat(
        path_,
        ": does not say where its documents end; make it with `troupe "
        "data prepare`"));
  }
  if (first > size() || count > size() - first) {
    return absl::OutOfRangeError(absl::StrCat(path_, ": has ", size(),
                                              " tokens, asked for the ends of "
                                              "documents among ",
                                              count, " from ", first));
  }
  // The first document that ends behind token `first`.
  uint64_t low = 0;
  for (uint64_t high = layout_.documents; low < high;) {
    const uint64_t middle = low + (high - low) / 2;
    ASSIGN_OR_RETURN(const uint64_t end, DocumentEnd(middle));
    if (end > first) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  std::vector<uint64_t> ends;
  char piece[kEndsAtOnce * kEndTokenBytes];
  for (uint64_t last = first; low < layout_.documents;) {
    const uint64_t here = std::min(kEndsAtOnce, layout_.documents - low);
    const uint64_t offset =
        layout_.document_ends->offset + low * kEndTokenBytes;
    RETURN_IF_ERROR(layout_.data->Read(offset, here * kEndTokenBytes, piece));
    for (uint64_t i = 0; i < here; ++i) {
      const auto end = LoadLittleEndian<uint64_t>(piece + i * kEndTokenBytes);
      if (end <= last) {
        return absl::DataLossError(
            absl::StrCat(path_, ": offset ", offset + i * kEndTokenBytes,
                         ": a document ends at token ", end, ", behind token ",
                         last, "; the file is damaged; prepare it again"));
      }
      if (end > first + count) return ends;
      ends.push_back(end);
      last = end;
    }
    low += here;
  }
  return ends;
}

absl::Status TokenFile::VerifyDocumentEnds() const {
  if (!layout_.document_ends.has_value()) return absl::OkStatus();
  const uint64_t begin = layout_.document_ends->offset;
  std::string chunk(kChecksumBytes, '\0');
  static_assert(kChecksumBytes % kEndTokenBytes == 0);
  uint32_t crc = 0;
  uint64_t last = 0;
  const uint64_t bytes = layout_.documents * kEndTokenBytes;
  for (uint64_t done = 0; done < bytes; done += chunk.size()) {
    chunk.resize(std::min<uint64_t>(chunk.size(), bytes - done));
    RETURN_IF_ERROR(
        layout_.data->Read(begin + done, chunk.size(), chunk.data()));
    crc = ExtendCrc32c(crc, chunk);
    for (size_t at = 0; at < chunk.size(); at += kEndTokenBytes) {
      const auto end = LoadLittleEndian<uint64_t>(chunk.data() + at);
      if (end <= last || end > size()) {
        return absl::DataLossError(absl::StrCat(
            path_, ": offset ", begin + done + at,
            ": a document ends at token ", end, ", the one before it at ", last,
            ", and there are ", size(), " tokens"));
      }
      last = end;
    }
  }
  if (crc == layout_.document_ends->crc32c && last == size()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      path_, ": offset ", begin,
      ": the ends of its documents are damaged; prepare the file again"));
}

absl::Status TokenFile::Verify() const {
  std::vector<int32_t> ids(std::min(kVerifyTokens, size()));
  for (uint64_t at = 0; at < size(); at += ids.size()) {
    RETURN_IF_ERROR(
        Read(at, std::min<uint64_t>(ids.size(), size() - at), ids.data()));
  }
  RETURN_IF_ERROR(CheckSum([] { return true; }));
  return VerifyDocumentEnds();
}

}  // namespace troupe
