#include "storage/corpus/byte_source.h"

#include <utility>

#include "absl/strings/match.h"
#include "proto/base/status.h"
#include "storage/corpus/file_bytes.h"
#include "storage/corpus/unpack.h"

namespace troupe {
namespace {

constexpr absl::string_view kGzipMagic = "\x1f\x8b";
constexpr absl::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
// Of frames that hold no data, behind a first byte 0x50 to 0x5f.
constexpr absl::string_view kSkippableMagic = "\x2a\x4d\x18";

}  // namespace

Compression CompressionOf(absl::string_view head) {
  if (absl::StartsWith(head, kGzipMagic)) return Compression::kGzip;
  if (absl::StartsWith(head, kZstdMagic)) return Compression::kZstd;
  const bool skippable = !head.empty() && (head[0] & 0xf0) == 0x50 &&
                         head.substr(1, 3) == kSkippableMagic;
  return skippable ? Compression::kZstd : Compression::kNone;
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(
    const ByteSourceOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<FileBytes> file, FileBytes::Open(options));
  if (!options.unpack) return file;
  ASSIGN_OR_RETURN(const absl::string_view head, file->Ahead(4));
  switch (CompressionOf(head)) {
    case Compression::kGzip:
      return UnpackGzip(std::move(file));
    case Compression::kZstd:
      return UnpackZstd(std::move(file));
    case Compression::kNone:
      break;
  }
  return file;
}

absl::StatusOr<std::string> FirstUnpackedBytes(const std::string& path,
                                               size_t bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source,
                   OpenByteSource({.path = path}));
  std::string head(bytes, '\0');
  size_t had = 0;
  while (had < bytes) {
    ASSIGN_OR_RETURN(const size_t got,
                     source->Read(head.data() + had, bytes - had));
    if (got == 0) break;
    had += got;
  }
  head.resize(had);
  return head;
}

}  // namespace troupe
