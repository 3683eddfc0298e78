// Loads what a rank needs of a checkpoint: reads the blocks of its files in
// which that lies, each once, large and many in flight, and checks each against
// the manifest before anybody sees a byte of it. Files of which the manifest
// has but one checksum (of checkpoints of before it had those of blocks) are
// read whole, and known to be good at their end.
//
//   ASSIGN_OR_RETURN(CheckpointLoad load,
//                    CheckpointLoad::Of({path, manifest}, tensors));
//   ... load.bytes() are to be read ...
//   RETURN_IF_ERROR(load.Run(engine, moved));
#ifndef TROUPE_STORAGE_CHECKPOINT_LOAD_TENSORS_H_
#define TROUPE_STORAGE_CHECKPOINT_LOAD_TENSORS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/checkpoint/manifest.h"
#include "storage/engine/engine.h"

namespace troupe {

struct TensorToLoad {
  std::string name;
  StoredDType dtype = StoredDType::kF32;
  std::vector<int64_t> shape;  // of what it is taken into
  // What is wanted of it; empty: all. Blocks that have none of that are not
  // read; of the others `take` gets what they have of the tensor.
  std::vector<TensorBox> boxes;
  // Takes bytes of the dense, row-major tensor from `offset` on, whole
  // elements, which lie there during the call. Each comes once at most, in any
  // order. An error ends the load.
  std::function<absl::Status(uint64_t offset, absl::string_view bytes)> take;
};

struct CheckpointToLoad {
  std::string path;          // <dir>/step-...
  const Manifest& manifest;  // its own; outlives the load
};

class CheckpointLoad {
 public:
  // Reads the headers of the files that hold the tensors. NotFound for an
  // unknown tensor, InvalidArgument for one of another dtype or shape; DataLoss
  // where a file is missing or not as the manifest says; other errors of the
  // disk as they are.
  static absl::StatusOr<CheckpointLoad> Of(
      const CheckpointToLoad& checkpoint,
      const std::vector<TensorToLoad>& tensors);

  CheckpointLoad(CheckpointLoad&&) = default;
  CheckpointLoad& operator=(CheckpointLoad&&) = default;

  // That Run reads and tells of.
  uint64_t bytes() const;

  // Call once. The engine must be idle. DataLoss names the file and the block
  // that is not as it was written, or an element of an f32 tensor that is NaN
  // or infinite (check_numbers.h): what was taken by then is worth nothing.
  absl::Status Run(IoEngine& engine, const OnBytesMoved& moved);

 private:
  // A tensor of a file that is asked for: all of it, which is `box` of the
  // logical tensor.
  struct Shard {
    const TensorToLoad* tensor;
    uint64_t begin;  // in the file
    uint64_t end;
    TensorBox box;
    std::vector<int64_t> shape;  // of the logical tensor
  };
  struct File {
    std::string path;
    const ManifestFile* listed;
    std::vector<Shard> shards;     // in the order of the file
    std::vector<uint64_t> blocks;  // to be read, ascending
  };
  // A shard of a tensor that is asked for.
  struct Wanted {
    const TensorToLoad* tensor;
    const ManifestTensor* stored;
    const ManifestShard* shard;
    std::vector<TensorBox> boxes;  // of the tensor, within the shard
  };
  class Reading;

  CheckpointLoad() = default;
  static absl::StatusOr<File> FileWith(const std::string& path,
                                       const ManifestFile& listed,
                                       const std::vector<Wanted>& wanted);
  static absl::Status Take(const File& file, const Shard& shard, uint64_t from,
                           absl::string_view bytes);

  std::vector<TensorToLoad> tensors_;
  std::vector<File> files_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_LOAD_TENSORS_H_
