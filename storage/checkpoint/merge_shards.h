// The tensors of a checkpoint, put together from what all ranks wrote of them:
// one after the other in the order of their names, each with all of its shards,
// checked. Holds one tensor of each description at a time, so that a commit
// needs the same memory however many tensors there are.
//
//   ASSIGN_OR_RETURN(ShardMerge merge, ShardMerge::Open(directory, receipts));
//   while (true) {
//     ASSIGN_OR_RETURN(auto tensor, merge.Next());
//     if (!tensor.has_value()) break;
//     ...
//   }
#ifndef TROUPE_STORAGE_CHECKPOINT_MERGE_SHARDS_H_
#define TROUPE_STORAGE_CHECKPOINT_MERGE_SHARDS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "storage/checkpoint/manifest_entries.h"
#include "storage/checkpoint/shard_description.h"

namespace troupe {

class ShardMerge {
 public:
  // Errors as DescriptionReader::Open; InvalidArgument where two shards are in
  // one file.
  static absl::StatusOr<ShardMerge> Open(
      const std::string& directory, absl::Span<const ShardReceipt> receipts);

  // Of all shards.
  const std::vector<ManifestFile>& files() const { return files_; }
  bool data_unchecked() const { return data_unchecked_; }

  // Nothing at the end. InvalidArgument, with the tensor, where ranks disagree
  // about it or their shards do not tile it; errors of the descriptions.
  absl::StatusOr<absl::optional<ManifestTensor>> Next();

 private:
  absl::Status Advance(size_t reader);
  absl::StatusOr<ManifestTensor> Join(const std::vector<size_t>& owners);

  std::string directory_;
  std::vector<DescriptionReader> readers_;
  std::map<std::string, std::vector<size_t>> heads_;  // by name: its readers
  std::vector<ManifestTensor> next_;                  // by reader
  std::vector<ManifestFile> files_;
  std::set<std::string> names_;  // of files_
  bool data_unchecked_ = false;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_MERGE_SHARDS_H_
