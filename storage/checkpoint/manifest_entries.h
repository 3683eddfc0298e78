// What a manifest says of one tensor, one shard and one file.
#ifndef TROUPE_STORAGE_CHECKPOINT_MANIFEST_ENTRIES_H_
#define TROUPE_STORAGE_CHECKPOINT_MANIFEST_ENTRIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "storage/checkpoint/stored_dtype.h"
#include "storage/checkpoint/tensor_box.h"

namespace troupe {

// A piece of a tensor: the whole of tensor `key` in `file` is `box` of the
// logical tensor.
struct ManifestShard {
  std::string file;  // in the checkpoint's directory
  std::string key;   // the tensor's name in that file
  TensorBox box;
};

struct ManifestTensor {
  std::string name;  // "transformer.wte.weight", "optimizer.exp_avg.<name>"
  StoredDType dtype = StoredDType::kF32;
  std::vector<int64_t> shape;         // global
  std::vector<ManifestShard> shards;  // tile the tensor
};

// The checksums of a file's blocks let a reader check what it reads, and read
// only what it needs.
inline constexpr uint64_t kBlockBytes = uint64_t{4} << 20;
struct ManifestFile {
  std::string name;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  // CRC-32C of each block of kBlockBytes, the last one shorter; empty in
  // manifests of earlier versions, and of assets.
  std::vector<uint32_t> blocks = {};
};

// The scale of an fp16 job's loss, and the updates that it has cost.
struct ManifestLossScale {
  double scale = 0;           // 0: no fp16 job has trained this yet
  int64_t good_steps = 0;     // since it last changed
  int64_t skipped_steps = 0;  // of all steps, those that updated nothing
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_MANIFEST_ENTRIES_H_
