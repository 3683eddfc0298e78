#include "storage/dataset/text_sample.h"

#include <algorithm>

#include "proto/base/status.h"
#include "storage/engine/posix_file.h"

namespace troupe {

absl::StatusOr<std::string> SampleText(const std::string& path,
                                       const TextSampleOptions& options) {
  ASSIGN_OR_RETURN(const PosixFile file, PosixFile::Open(path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  std::string sample;
  if (bytes <= options.bytes_max) {
    sample.resize(bytes);
    RETURN_IF_ERROR(file.ReadAt(0, bytes, sample.data()));
    return sample;
  }
  const uint64_t pieces =
      std::max<uint64_t>(1, options.bytes_max / options.piece_bytes);
  const uint64_t piece_bytes = std::min(options.piece_bytes, options.bytes_max);
  for (uint64_t i = 0; i < pieces; ++i) {
    std::string piece(piece_bytes, '\0');
    const uint64_t at =
        pieces == 1
            ? 0
            : static_cast<uint64_t>(static_cast<double>(i) / (pieces - 1) *
                                    (bytes - piece_bytes));
    RETURN_IF_ERROR(file.ReadAt(at, piece.size(), piece.data()));
    // Drops the halves of lines at both ends.
    const size_t end = piece.rfind('\n');
    if (end != std::string::npos) piece.resize(end + 1);
    const size_t begin = at == 0 ? std::string::npos : piece.find('\n');
    if (begin != std::string::npos) piece.erase(0, begin + 1);
    sample += piece;
  }
  return sample;
}

}  // namespace troupe
