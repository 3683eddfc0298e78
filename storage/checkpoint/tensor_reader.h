// Reads any piece of any tensor of a checkpoint, from whatever shards hold it:
// how one plan resumes from what another saved. It reads whole rows of
// a shard, a few MiB at a time, and keeps what is asked for.
//
//   ASSIGN_OR_RETURN(auto checkpoint, TensorReader::Open(path));
//   RETURN_IF_ERROR(checkpoint->Read("transformer.wte.weight",
//                                    StoredDType::kF32,
//                                    {.start = {0, 0}, .shape = {128, 384}},
//                                    out));
#ifndef TROUPE_STORAGE_CHECKPOINT_TENSOR_READER_H_
#define TROUPE_STORAGE_CHECKPOINT_TENSOR_READER_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/checkpoint/manifest.h"
#include "storage/checkpoint/safetensors_reader.h"
#include "storage/checkpoint/tensor_box.h"

namespace troupe {

// Thread-safe.
class TensorReader {
 public:
  // `path`: one checkpoint (<dir>/step-...). Checks the manifest; a file is
  // opened, and all of it checked against its checksum, when first needed.
  static absl::StatusOr<std::unique_ptr<TensorReader>> Open(
      const std::string& path);

  const Manifest& manifest() const { return manifest_; }
  // Null where the checkpoint has no such tensor.
  const ManifestTensor* Find(absl::string_view name) const;

  // Fills `out`, dense and row-major, with `box` of tensor `name`. NotFound for
  // an unknown tensor, InvalidArgument where dtype or box do not fit, DataLoss
  // where a file is not as the manifest says.
  absl::Status Read(absl::string_view name, StoredDType dtype,
                    const TensorBox& box, void* out) const;

  // Elements [begin, begin + count) of the flattened tensor, for flat buffers.
  absl::Status ReadRange(absl::string_view name, StoredDType dtype,
                         const FlatRange& range, void* out) const;

 private:
  TensorReader(std::string path, Manifest manifest);
  absl::StatusOr<const ManifestTensor*> FindTyped(absl::string_view name,
                                                  StoredDType dtype) const;
  absl::StatusOr<const SafetensorsReader*> File(const std::string& name) const;
  absl::Status ReadShard(const ManifestTensor& tensor,
                         const ManifestShard& shard, const TensorBox& box,
                         char* out) const;

  const std::string path_;
  const Manifest manifest_;
  absl::flat_hash_map<std::string, const ManifestTensor*> tensors_;
  absl::flat_hash_map<std::string, const ManifestFile*> files_;
  mutable absl::Mutex mutex_;
  mutable absl::flat_hash_map<std::string, std::unique_ptr<SafetensorsReader>>
      open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_TENSOR_READER_H_
