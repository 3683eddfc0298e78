// manifest.json: what a checkpoint holds and where. Tensors are named and
// shaped as in the model, never as in the plan that saved them, so that any
// other plan can find its pieces. A checkpoint is complete exactly when its
// directory bears its final name; the manifest then says how large each file
// must be and what its checksum is.
#ifndef TROUPE_STORAGE_CHECKPOINT_MANIFEST_H_
#define TROUPE_STORAGE_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/checkpoint/manifest_entries.h"

namespace troupe {

inline constexpr int kManifestVersion = 1;
inline constexpr absl::string_view kManifestFile = "manifest.json";

struct Manifest {
  std::string job_name;
  std::string run_id;  // JobStatus.run_id of the job; empty: of no job
  int64_t step = 0;    // steps completed
  uint64_t samples_consumed = 0;  // the data cursor: the next sample's number
  uint64_t seed = 0;
  std::string plan_fingerprint;  // of the plan that saved it
  std::string job;        // the resolved job, JSON; storage never reads it
  std::string tokenizer;  // by name, as in dataset/tokenizer.h
  // What the tokens were (dataset/token_file.h, identity); empty: not known.
  std::string data;
  // The checksum of the tokens was not known to hold yet when this was written:
  // damage in them would have been found later.
  bool data_unchecked = false;
  ManifestLossScale loss_scale;
  absl::Time created;
  std::vector<ManifestTensor> tensors;
  std::vector<ManifestFile> files;
  std::vector<ManifestFile> assets;  // in the folder assets/ (assets.h)
};

// Deterministic: tensors, shards and files are sorted, whatever their order
// here. One that may be large is written piece by piece (manifest_writer.h).
std::string FormatManifest(const Manifest& manifest);

// What is read of a manifest. Without tensors it takes little memory, and they
// are not checked.
enum class ManifestPart { kAll, kWithoutTensors };

// Parses and checks. DataLoss with `where` (the path) and the field.
absl::StatusOr<Manifest> ParseManifest(absl::string_view json,
                                       absl::string_view where,
                                       ManifestPart part = ManifestPart::kAll);

// InvalidArgument, with the tensor or file, unless names are unique and none
// leaves its folder, every shard's file is listed, and the shards of each
// tensor tile it exactly once.
absl::Status CheckManifest(const Manifest& manifest);
// The parts of it: of one tensor, whose shards are in some of these files, and
// of the names of files.
absl::Status CheckTensor(const ManifestTensor& tensor,
                         const std::set<std::string>& files);
absl::Status CheckFileNames(const std::vector<ManifestFile>& files);

// What tells a checkpoint from others that lie, or lay, at the same path: by
// which plan it was made, at which step, when.
std::string MadeText(const Manifest& manifest);

// Reads and parses `directory`/manifest.json. NotFound where there is none.
absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      ManifestPart part = ManifestPart::kAll);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_MANIFEST_H_
