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

constexpr uint64_t kVocabSizeMax = uint64_t{1} << 31;
constexpr uint64_t kVerifyTokens = 1 << 16;  // at once

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
  uint64_t vocab_size = kVocabSizeMax;
  for (const uint64_t bound : {options.vocab_size, layout.vocab_size}) {
    if (bound != 0) vocab_size = std::min(vocab_size, bound);
  }
  return TokenFile(path, std::move(layout), vocab_size);
}

absl::Status TokenFile::BadToken(uint64_t index, uint64_t offset) const {
  const int64_t token = static_cast<int64_t>(
      TokenAt(layout_.data.bytes().data() + offset, layout_.type));
  return absl::DataLossError(
      absl::StrCat(layout_.data.path(), ": offset ", offset, ": token ", index,
                   " is ", token, ", the vocabulary has ", vocab_size_));
}

absl::Status TokenFile::Read(uint64_t first, uint64_t count,
                             int32_t* out) const {
  if (first > size() || count > size() - first) {
    return absl::OutOfRangeError(absl::StrCat(path_, ": has ", size(),
                                              " tokens, asked for ", count,
                                              " from ", first));
  }
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
    uint64_t offset =
        here.offset + (token - here.first_token) * layout_.type.bytes;
    for (; token < stop; ++token, offset += layout_.type.bytes) {
      const uint64_t id =
          TokenAt(layout_.data.bytes().data() + offset, layout_.type);
      if (id >= vocab_size_) return BadToken(token, offset);
      *out++ = static_cast<int32_t>(id);
    }
  }
  return absl::OkStatus();
}

absl::Status TokenFile::Verify() const {
  std::vector<int32_t> ids(std::min(kVerifyTokens, size()));
  for (uint64_t at = 0; at < size(); at += ids.size()) {
    RETURN_IF_ERROR(
        Read(at, std::min<uint64_t>(ids.size(), size() - at), ids.data()));
  }
  if (!layout_.data_crc32c.has_value() || layout_.runs.size() > 1) {
    return absl::OkStatus();
  }
  const uint64_t begin = layout_.runs.empty() ? 0 : layout_.runs[0].offset;
  const uint32_t crc =
      Crc32c(layout_.data.bytes().substr(begin, size() * layout_.type.bytes));
  if (crc == *layout_.data_crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s: offset %d: the tokens' CRC-32C is %08x, the header says %08x: they "
      "are damaged; prepare the file again",
      path_, begin, crc, *layout_.data_crc32c));
}

}  // namespace troupe
