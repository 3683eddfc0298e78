#include "storage/checkpoint/check_file.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

}  // namespace

absl::Status CheckFile(const std::string& path, const ManifestFile& want,
                       CheckDepth depth) {
  absl::StatusOr<PosixFile> file = PosixFile::Open(path, IoMode::kRead);
  if (absl::IsNotFound(file.status())) {
    return absl::DataLossError(absl::StrCat(path, ": is missing"));
  }
  RETURN_IF_ERROR(file.status());
  ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  if (bytes != want.bytes) {
    return absl::DataLossError(absl::StrCat(
        path, ": has ", bytes, " bytes, the manifest says ", want.bytes));
  }
  if (depth == CheckDepth::kSizes) return absl::OkStatus();
  std::string chunk(kChunkBytes, '\0');
  uint32_t crc = 0;
  for (uint64_t at = 0; at < bytes; at += chunk.size()) {
    chunk.resize(std::min<uint64_t>(kChunkBytes, bytes - at));
    RETURN_IF_ERROR(file->ReadAt(at, chunk.size(), chunk.data()));
    crc = ExtendCrc32c(crc, chunk);
  }
  if (crc == want.crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s: CRC-32C is %08x, the manifest says %08x: its content changed", path,
      crc, want.crc32c));
}

}  // namespace troupe
