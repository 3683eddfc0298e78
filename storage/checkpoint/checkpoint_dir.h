// The directory in which a job's checkpoints lie, and what a reader of it may
// rely on:
//
//   <dir>/step-00000050/               manifest.json, rank-00000.safetensors,
//                                      ..., assets/tokenizer.model, ...
//   <dir>/step-00000100.tmp-<token>/   being written, or left by a crash
//   <dir>/step-00000050.replaced/      left by a crash
//   (storage/disk/new_directory.h)
//
// Only a directory with the first form of name is a checkpoint, and it got that
// name by one atomic rename after all in it was durable (commit.h). Names of
// the second form mean nothing to readers; one of the third is the checkpoint
// of its step where the first is not there.
#ifndef TROUPE_STORAGE_CHECKPOINT_CHECKPOINT_DIR_H_
#define TROUPE_STORAGE_CHECKPOINT_CHECKPOINT_DIR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/checkpoint/check_file.h"
#include "storage/checkpoint/manifest.h"

namespace troupe {

struct CheckpointEntry {
  int64_t step = 0;
  std::string path;
};

// <dir>/step-00000050.
std::string CheckpointPath(const std::string& dir, int64_t step);

// All committed names, oldest step first, complete or not; empty where the
// directory is missing.
absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(
    const std::string& dir);

// Whether `path` is a folder of checkpoints, and not one of them: a job that
// resumes from it means its newest.
bool HoldsCheckpoints(const std::string& path);

// Makes the directory where it is missing and proves that files can be made and
// written in it: better known before the first step than at the first
// checkpoint. Errors name the path and say what to do.
absl::Status PrepareCheckpointDirectory(const std::string& dir);

// ReadManifest for callers that were told that a checkpoint is at `path`.
// NotFound says which to use instead: the newest in that folder, or beside it.
absl::StatusOr<Manifest> ReadCheckpoint(const std::string& path);

// DataLoss that names the file, where the checkpoint at `path` is not whole.
// Gives back its manifest.
absl::StatusOr<Manifest> CheckCheckpoint(const std::string& path,
                                         CheckDepth depth);

// The newest whole checkpoint of a directory, and for each newer one that is
// not a line that names what is wrong with which of its files.
struct NewestCheckpoint : CheckpointEntry {
  std::vector<std::string> skipped;  // newest first; also in the log
};

// Of checkpoints that are known not to be whole what is wrong, by path.
using DamagedCheckpoints = std::map<std::string, std::string>;

// The highest step that is whole. NotFound where there is none, with what is
// wrong with the newest. Only what is torn or damaged, as `known` or as it is
// found now, is skipped; where the disk says that it cannot tell (no
// permission, too many open files, an I/O error), that is the error.
absl::StatusOr<NewestCheckpoint> FindNewestComplete(
    const std::string& dir, CheckDepth depth = CheckDepth::kSizes,
    const DamagedCheckpoints& known = {});

struct PruneOptions {
  std::string dir;
  int64_t written = 0;  // the step of the checkpoint that was just committed
  int keep = 1;         // at least 1
};

// Of the checkpoints up to `written` keeps the newest `keep` whole ones; older
// ones, whole or not, lose their names, and with temporary directories come to
// `trees`, which the caller removes. Those of later steps stay: another rank
// writes the next one already, or an earlier run of the job left them. So does
// all where none up to `written` is whole.
absl::Status PruneCheckpoints(const PruneOptions& options,
                              std::vector<std::string>& trees);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_CHECKPOINT_DIR_H_
