// How several ranks write one checkpoint, so that it is there whole or not at
// all:
//
//   1. Every rank:  BeginCheckpoint -> the temporary directory (the first one
//      to come makes it; all pass the same token, unique to this attempt).
//   2. Every rank:  WriteShardFile -> its file, fsynced, and a ShardFile that
//      describes it. FormatShardFile makes it text for a message.
//   3. One rank, when it has all ShardFiles:  CommitCheckpoint checks that they
//      tile every tensor, writes the assets (assets.h) and the manifest, and
//      gives the directory its final name (storage/disk/new_directory.h).
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

// What one rank wrote.
struct ShardFile {
  ManifestFile file;
  std::vector<ManifestTensor>
      tensors;                  // each with the shards of this file only
  bool data_unchecked = false;  // of the manifest: for its rank's host
};

// <dir>/step-00000050.tmp-<token>, made where it is missing.
absl::StatusOr<std::string> BeginCheckpoint(const CheckpointAttempt& attempt);

// Its path.
std::string TemporaryDirectory(const CheckpointAttempt& attempt);

// Writes <temporary directory>/rank-00003.safetensors. The engine must be idle.
// On an error, of the disk or of `moved`, the file is left torn: give up the
// attempt (AbandonCheckpoint).
absl::StatusOr<ShardFile> WriteShardFile(IoEngine& engine,
                                         const CheckpointAttempt& attempt,
                                         int rank,
                                         absl::Span<const ShardToWrite> shards,
                                         const OnBytesMoved& moved = nullptr);

// `manifest` comes with everything but tensors, files and assets, which are
// gathered from `shard_files` and `carried`. Returns the final path.
// InvalidArgument where the shards do not tile or two assets have one name;
// errors of the disk name the path. `may_publish` is asked when all is written,
// just before it gets its name: its error ends the commit.
absl::StatusOr<std::string> CommitCheckpoint(
    const CheckpointAttempt& attempt, Manifest manifest,
    absl::Span<const ShardFile> shard_files,
    absl::Span<const CarriedFile> carried = {},
    const std::function<absl::Status()>& may_publish = nullptr);

// Removes the temporary directory: what was written so far or, after the
// commit, what the checkpoint replaced. OK where there is none.
absl::Status AbandonCheckpoint(const CheckpointAttempt& attempt);

// As JSON text, for a message between ranks.
std::string FormatShardFile(const ShardFile& file);
absl::StatusOr<ShardFile> ParseShardFile(absl::string_view json);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_COMMIT_H_
