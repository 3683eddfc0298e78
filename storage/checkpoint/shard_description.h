// What a rank says of the shard file that it wrote: which pieces of which
// tensors are in it, and the file's checksums. It lies in a file beside the
// shard, since it grows with the model, and messages must not; a message has
// only a ShardReceipt. One line of JSON for the file, then one for each tensor,
// in the order of their names:
//
//   {"data_unchecked": false, "file": {...}}
//   {"dtype": "F32", "name": "transformer.wte.weight", "shards": [...], ...}
//
// so that the rank that commits reads all of them side by side, one tensor at a
// time (merge_shards.h). They are removed before the checkpoint gets its name.
#ifndef TROUPE_STORAGE_CHECKPOINT_SHARD_DESCRIPTION_H_
#define TROUPE_STORAGE_CHECKPOINT_SHARD_DESCRIPTION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "storage/checkpoint/manifest_entries.h"

namespace troupe {

// Names in the directory of the checkpoint.
struct ShardReceipt {
  std::string file;
  uint64_t bytes = 0;
  std::string description;
  uint64_t description_bytes = 0;
  uint32_t description_crc32c = 0;
};

// What one rank wrote.
struct ShardFile {
  ManifestFile file;
  std::vector<ManifestTensor>
      tensors;  // each with the shards of this file only
  // Its rank did not know yet that the checksum of the data holds.
  bool data_unchecked = false;
};

// "rank-00003.safetensors" is described in "rank-00003.shard.jsonl".
std::string DescriptionName(absl::string_view file);

// Writes the description into `directory`, durably. Errors are the disk's.
absl::StatusOr<ShardReceipt> WriteDescription(const std::string& directory,
                                              const ShardFile& shard);

// Reads one, a tensor at a time, with a buffer of kBufferBytes or of its
// longest line. No file stays open between two calls: a commit reads thousands
// at once.
class DescriptionReader {
 public:
  static constexpr size_t kBufferBytes = 32 << 10;

  // Reads the first line. DataLoss names the file where it is not what its
  // receipt says; else the disk's errors.
  static absl::StatusOr<DescriptionReader> Open(const std::string& directory,
                                                const ShardReceipt& receipt);

  // Of the first line. Once.
  ManifestFile TakeFile() { return std::move(file_); }
  bool data_unchecked() const { return data_unchecked_; }

  // The next tensor; nothing at the end, when it is known that all of it was
  // what the receipt says. DataLoss where it is not, or where the names do not
  // ascend.
  absl::StatusOr<absl::optional<ManifestTensor>> Next();

 private:
  DescriptionReader(std::string path, const ShardReceipt& receipt)
      : path_(std::move(path)), receipt_(receipt) {}

  // Nothing at the end.
  absl::StatusOr<absl::optional<std::string>> NextLine();
  absl::Status Fill();
  absl::Status ReadHead();
  absl::Status Damaged(const absl::Status& why) const;

  std::string path_;
  ShardReceipt receipt_;
  ManifestFile file_;
  bool data_unchecked_ = false;
  std::string last_name_;
  std::string buffer_;   // what was read
  size_t at_ = 0;        // of that, what was given back
  uint64_t read_ = 0;    // bytes of the file
  uint32_t crc32c_ = 0;  // of them
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_SHARD_DESCRIPTION_H_
