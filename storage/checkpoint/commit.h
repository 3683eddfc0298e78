// How several ranks write one checkpoint, so that it is there whole or not at
// all:
//
//   1. Every rank:  BeginCheckpoint -> the temporary directory (the first one
//      to come makes it; all pass the same token, unique to this attempt).
//   2. Every rank:  WriteShardFile -> its file and, beside it, the description
//      of what is in it (shard_description.h), both fsynced, and a receipt that
//      names them, short enough for a message.
//   3. One rank, when it has all receipts:  CommitCheckpoint checks that the
//      shards tile every tensor, writes the assets (assets.h) and the manifest,
//      and gives the directory its final name (storage/disk/new_directory.h).
//      Its memory does not grow with the number of tensors (merge_shards.h).
//
// A crash before the rename leaves a temporary directory, which
// PruneCheckpoints finds; after it the checkpoint is durable. Where a
// checkpoint of that step exists already, the two directories are exchanged in
// one step: at no time is there none, and a loss of power leaves the old or the
// new, whole. The old one is left as the temporary directory.
#ifndef TROUPE_STORAGE_CHECKPOINT_COMMIT_H_
#define TROUPE_STORAGE_CHECKPOINT_COMMIT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/manifest.h"
#include "storage/checkpoint/shard_description.h"
#include "storage/engine/engine.h"

namespace troupe {

// One attempt to write one checkpoint; the same on all ranks.
struct CheckpointAttempt {
  std::string dir;   // of all checkpoints; made where it is missing
  int64_t step = 0;  // steps completed
  std::string
      token;  // letters, digits, '-': for example the job's id and attempt
};

// A piece of a tensor that this rank saves. Replicated tensors: one rank saves.
struct ShardToWrite {
  std::string name;  // of the logical tensor
  StoredDType dtype = StoredDType::kF32;
  std::vector<int64_t> shape;  // global
  TensorBox box;
  const void* data = nullptr;  // the box, dense; borrowed for the call
  // In place of data that the host cannot read: fetches the box's bytes from
  // `offset` on.
  std::function<absl::Status(uint64_t offset, absl::Span<char> bytes)> fetch;
};

// The rank that writes a shard file.
struct ShardWriter {
  int rank = 0;
  bool data_unchecked = false;  // of the manifest: for its rank's host
};

// <dir>/step-00000050.tmp-<token>, made where it is missing.
absl::StatusOr<std::string> BeginCheckpoint(const CheckpointAttempt& attempt);

// Its path.
std::string TemporaryDirectory(const CheckpointAttempt& attempt);

// Writes <temporary directory>/rank-00003.safetensors and its description. The
// engine must be idle. On an error, of the disk or of `moved`, the files are
// left torn: write them again, or give up the attempt (AbandonCheckpoint).
absl::StatusOr<ShardReceipt> WriteShardFile(
    IoEngine& engine, const CheckpointAttempt& attempt,
    const ShardWriter& writer, absl::Span<const ShardToWrite> shards,
    const OnBytesMoved& moved = nullptr);

// `manifest` comes with everything but tensors, files and assets, which are
// gathered from the shards and `carried`. Returns the final path.
// InvalidArgument where the shards do not tile or two assets have one name;
// errors of the disk name the path. `may_publish` is asked when all is written,
// just before it gets its name: its error ends the commit. After any error the
// shards have to be written again.
absl::StatusOr<std::string> CommitCheckpoint(
    const CheckpointAttempt& attempt, Manifest manifest,
    absl::Span<const ShardReceipt> receipts,
    absl::Span<const CarriedFile> carried = {},
    const std::function<absl::Status()>& may_publish = nullptr);

// Removes the temporary directory: what was written so far or, after the
// commit, what the checkpoint replaced. OK where there is none.
absl::Status AbandonCheckpoint(const CheckpointAttempt& attempt);

// Removes what this rank has written of its shard, and the temporary directory
// if nothing else is in it: one that another rank has given up, and this one
// made again, does not stay. OK where there is none.
absl::Status AbandonShard(const CheckpointAttempt& attempt, int rank);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_COMMIT_H_
