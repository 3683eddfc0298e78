// Any bytes as a token file of any format: as they are, and as Troupe's own
// with the header's checksum mended, so that what lies behind it is reached
// too. What begins like Megatron-LM's .idx is one, and "|BIN|" in it begins its
// .bin.
#include "storage/dataset/token_file.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "storage/dataset/sample_reader.h"
#include "storage/dataset/troupe_file.h"
#include "storage/engine/little_endian.h"
#include "tests/fuzz/scratch_dir.h"

namespace troupe {
namespace {

// Where the header's checksum stands: the version is in byte 8.
uint64_t HeaderCrcAt(const std::string& bytes) {
  return bytes[8] == 1 ? 60 : kTokenFileHeaderBytes - 4;
}

void ReadTokens(const std::string& path) {
  const absl::StatusOr<TokenFile> file = TokenFile::Open(path);
  if (!file.ok()) return;
  const bool sound = file->Verify().ok();
  std::vector<int32_t> tokens(std::min<uint64_t>(file->size(), 4096) + 1);
  const absl::Status read = file->Read(0, tokens.size() - 1, tokens.data());
  if (sound) CHECK_OK(read);
  const uint64_t half = tokens.size() / 2;
  file->Read(file->size() / 2, std::min(half, file->size() / 2), tokens.data())
      .IgnoreError();
  CHECK(!file->Read(file->size() - half, half + 1, tokens.data()).ok());
  CHECK(!file->Read(UINT64_MAX, 2, tokens.data()).ok());
}

void ReadSamples(const std::string& path, uint64_t number) {
  constexpr uint64_t kLength = 3;
  const absl::StatusOr<SampleReader> reader =
      SampleReader::Create({.sources = {{path}},
                            .sequence_length = kLength,
                            .validation_fraction = 0.5});
  if (!reader.ok()) return;
  int32_t tokens[kLength];
  int32_t targets[kLength];
  const SampleOut out{absl::MakeSpan(tokens), absl::MakeSpan(targets)};
  reader->Read(number, out).IgnoreError();
  reader->ReadValidation(number, out).IgnoreError();
  reader->ReadValidation(0, out).IgnoreError();
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const troupe::ScratchDir scratch;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (absl::StartsWith(bytes, "MMIDIDX")) {
    const std::pair<absl::string_view, absl::string_view> files =
        absl::StrSplit(bytes, absl::MaxSplits("|BIN|", 1));
    scratch.Write("a.bin", files.second);
    const std::string path = scratch.Write("a.idx", files.first);
    troupe::ReadTokens(path);
    troupe::ReadSamples(path, size);
    return 0;
  }
  const std::string path = scratch.Write("b.tokens", bytes);
  troupe::ReadTokens(path);
  if (size < troupe::kTokenFileHeaderBytes) return 0;
  const uint64_t crc_at = troupe::HeaderCrcAt(bytes);
  const uint32_t crc =
      troupe::Crc32c(absl::string_view(bytes).substr(0, crc_at));
  troupe::StoreLittleEndian<uint32_t>(crc, bytes.data() + crc_at);
  scratch.Write("b.tokens", bytes);
  troupe::ReadTokens(path);
  troupe::ReadSamples(
      path, troupe::LoadLittleEndian<uint64_t>(bytes.data() + size - 8));
  return 0;
}
