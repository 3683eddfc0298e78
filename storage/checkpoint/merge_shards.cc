#include "storage/checkpoint/merge_shards.h"

#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/checkpoint/manifest.h"

namespace troupe {
namespace {

// In a file each key is there once: of a tensor it begins with its name, so
// that no other tensor's is the same.
absl::Status CheckKeys(const ManifestTensor& tensor) {
  for (const ManifestShard& shard : tensor.shards) {
    if (absl::StartsWith(shard.key, tensor.name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor.name, ": ", shard.key, " of ",
                     shard.file, " does not begin with its name"));
  }
  return absl::OkStatus();
}

absl::Status Append(ManifestTensor piece, ManifestTensor& whole) {
  if (whole.dtype != piece.dtype || whole.shape != piece.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", piece.name, ": ranks disagree about its dtype or shape"));
  }
  whole.shards.insert(whole.shards.end(),
                      std::make_move_iterator(piece.shards.begin()),
                      std::make_move_iterator(piece.shards.end()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShardMerge> ShardMerge::Open(
    const std::string& directory, absl::Span<const ShardReceipt> receipts) {
  ShardMerge merge;
  merge.directory_ = directory;
  for (const ShardReceipt& receipt : receipts) {
    ASSIGN_OR_RETURN(DescriptionReader reader,
                     DescriptionReader::Open(directory, receipt));
    if (!merge.names_.insert(receipt.file).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(directory, ": file ", receipt.file, " is there twice"));
    }
    merge.files_.push_back(reader.TakeFile());
    merge.data_unchecked_ |= reader.data_unchecked();
    merge.readers_.push_back(std::move(reader));
  }
  merge.next_.resize(merge.readers_.size());
  for (size_t i = 0; i < merge.readers_.size(); ++i) {
    RETURN_IF_ERROR(merge.Advance(i));
  }
  return merge;
}

absl::Status ShardMerge::Advance(size_t reader) {
  ASSIGN_OR_RETURN(absl::optional<ManifestTensor> tensor,
                   readers_[reader].Next());
  if (!tensor.has_value()) return absl::OkStatus();
  heads_[tensor->name].push_back(reader);
  next_[reader] = *std::move(tensor);
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<ManifestTensor>> ShardMerge::Next() {
  if (heads_.empty()) return absl::optional<ManifestTensor>();
  const std::vector<size_t> owners = std::move(heads_.begin()->second);
  heads_.erase(heads_.begin());
  absl::StatusOr<ManifestTensor> whole = Join(owners);
  if (!whole.ok()) return Annotate(whole.status(), directory_);
  for (const size_t owner : owners) RETURN_IF_ERROR(Advance(owner));
  return absl::optional<ManifestTensor>(*std::move(whole));
}

absl::StatusOr<ManifestTensor> ShardMerge::Join(
    const std::vector<size_t>& owners) {
  ManifestTensor whole = std::move(next_[owners.front()]);
  for (size_t i = 1; i < owners.size(); ++i) {
    RETURN_IF_ERROR(Append(std::move(next_[owners[i]]), whole));
  }
  RETURN_IF_ERROR(CheckKeys(whole));
  RETURN_IF_ERROR(CheckTensor(whole, names_));
  return whole;
}

}  // namespace troupe
