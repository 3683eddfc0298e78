// Compressed files as the bytes that they unpack to.
#ifndef TROUPE_STORAGE_CORPUS_UNPACK_H_
#define TROUPE_STORAGE_CORPUS_UNPACK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "storage/corpus/byte_source.h"
#include "storage/corpus/file_bytes.h"

namespace troupe {

// RFC 1952. Zero bytes behind the last member are padding, as on tapes.
absl::StatusOr<std::unique_ptr<ByteSource>> UnpackGzip(
    std::unique_ptr<FileBytes> file);

// RFC 8878. Windows of up to 128 MiB; a frame with a larger one is refused.
absl::StatusOr<std::unique_ptr<ByteSource>> UnpackZstd(
    std::unique_ptr<FileBytes> file);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_UNPACK_H_
