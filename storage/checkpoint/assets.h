// Assets: files that belong to a checkpoint and hold none of its tensors, such
// as its tokenizer or the config.json that the model came with. They lie in the
// folder assets/ of the checkpoint, are as durable as its shards when it is
// committed, and the manifest lists them with size and checksum, so that a
// checkpoint can be moved to another machine and still be understood.
//
//   CommitCheckpoint(attempt, manifest, shards, {{"tokenizer.model", bytes}});
//   ASSIGN_OR_RETURN(std::string model,
//                    ReadCarriedFile(checkpoint, "tokenizer.model"));
#ifndef TROUPE_STORAGE_CHECKPOINT_ASSETS_H_
#define TROUPE_STORAGE_CHECKPOINT_ASSETS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/checkpoint/manifest.h"

namespace troupe {

inline constexpr absl::string_view kAssetsFolder = "assets";
// Read whole: tokenizers are, weights are not.
inline constexpr uint64_t kCarriedFileBytesMax = uint64_t{256} << 20;

// A file that a checkpoint is to carry. Held in memory, so that what is carried
// is what was there when the job began.
struct CarriedFile {
  std::string name;  // in assets/: no '/', no leading '.'
  std::string bytes;
};

// The file at `path`, to be carried under `name`. Errors name the path.
absl::StatusOr<CarriedFile> LoadCarriedFile(const std::string& name,
                                            const std::string& path);

// <checkpoint>/assets/<name>.
std::string AssetPath(const std::string& checkpoint, absl::string_view name);

// Where the carried file of this name lies in a checkpoint. NotFound where the
// checkpoint carries none of this name, or there is no checkpoint.
absl::StatusOr<std::string> CarriedFilePath(const std::string& checkpoint,
                                            absl::string_view name);

// Its content. NotFound as above; DataLoss where it is not as the manifest
// says.
absl::StatusOr<std::string> ReadCarriedFile(const std::string& checkpoint,
                                            absl::string_view name);

// For CommitCheckpoint: the entries of the manifest, and the files themselves,
// durable on OK.
std::vector<ManifestFile> DescribeCarriedFiles(
    absl::Span<const CarriedFile> files);
absl::Status WriteCarriedFiles(const std::string& directory,
                               absl::Span<const CarriedFile> files);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_ASSETS_H_
