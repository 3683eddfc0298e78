// Whether a file of a checkpoint is the one that the manifest lists.
#ifndef TROUPE_STORAGE_CHECKPOINT_CHECK_FILE_H_
#define TROUPE_STORAGE_CHECKPOINT_CHECK_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "storage/checkpoint/manifest_entries.h"

namespace troupe {

enum class CheckDepth {
  kSizes,      // the file is there with its size
  kChecksums,  // and the CRC-32C of every byte: reads it all
};

// DataLoss that names the file where it is missing or not as `want` says.
absl::Status CheckFile(const std::string& path, const ManifestFile& want,
                       CheckDepth depth);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_CHECK_FILE_H_
