// The entries of a manifest as JSON: shared by the manifest and by the
// descriptions of shard files that ranks send each other.
#ifndef TROUPE_STORAGE_CHECKPOINT_MANIFEST_JSON_H_
#define TROUPE_STORAGE_CHECKPOINT_MANIFEST_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint/manifest_entries.h"

namespace troupe {

// {"scale", "good_steps", "skipped_steps"}
nlohmann::json LossScaleToJson(const ManifestLossScale& loss_scale);
absl::StatusOr<ManifestLossScale> LossScaleFromJson(
    const nlohmann::json& entry);

// {"name", "dtype", "shape", "shards": [{"file", "key", "start", "shape"}]}
nlohmann::json TensorToJson(const ManifestTensor& tensor);
// InvalidArgument with the tensor and the field.
absl::StatusOr<ManifestTensor> TensorFromJson(const nlohmann::json& entry);

// {"name", "bytes", "crc32c": "0123abcd"}
nlohmann::json FileToJson(const ManifestFile& file);
absl::StatusOr<ManifestFile> FileFromJson(const nlohmann::json& entry);

// Eight hexadecimal digits.
std::string FormatCrc(uint32_t crc);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_MANIFEST_JSON_H_
