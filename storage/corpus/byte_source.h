// A file's bytes from the first to the last, unpacked where it is compressed.
// Files are told apart by their first bytes, not by their names. Memory is
// bounded whatever the file unpacks to: bytes are unpacked as they are read.
#ifndef TROUPE_STORAGE_CORPUS_BYTE_SOURCE_H_
#define TROUPE_STORAGE_CORPUS_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// The standard input, where a file is asked for.
inline constexpr absl::string_view kStandardInput = "-";

enum class Compression { kNone, kGzip, kZstd };

// By the first bytes of a file, 4 or more where it has as many.
Compression CompressionOf(absl::string_view head);

struct ByteSourceOptions {
  std::string path;  // kStandardInput: of this process
  bool unpack = true;
  // Of a file that was looked at before; 0: any. A file that is another by
  // then, or changes while it is read, is an error.
  uint64_t size = 0;
  int64_t modified_ns = 0;
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Up to `bytes` bytes; 0: the end. DataLoss, with the file and the offset in
  // it, where what is compressed is damaged or cut off, and where something
  // else follows it. FailedPrecondition where the file has changed. Each member
  // of a gzip file and each frame of a zstd file follows the one before.
  virtual absl::StatusOr<size_t> Read(char* out, size_t bytes) = 0;

  // Bytes of the file that were taken, before unpacking.
  virtual uint64_t taken() const = 0;
};

// The errors of opening a file; InvalidArgument for a folder.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(
    const ByteSourceOptions& options);

// The first `bytes` bytes, unpacked; fewer where there are fewer.
absl::StatusOr<std::string> FirstUnpackedBytes(const std::string& path,
                                               size_t bytes);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_BYTE_SOURCE_H_
