// The directory of a job's checkpoints as the rank that commits there holds it:
// from the job's start to its end nobody else does, whatever name leads there
// (a lock in the directory itself, .lock, which names its holder), and what an
// earlier run left is not replaced or pruned unless that is meant.
//
//   ASSIGN_OR_RETURN(auto folder, CheckpointFolder::Open({.directory = dir,
//                                    .holder = "job 3", .starts_anew = true}));
//   ... commits a checkpoint ...
//   RETURN_IF_ERROR(folder->Committed(path, trees));
#ifndef TROUPE_STORAGE_CHECKPOINT_CHECKPOINT_FOLDER_H_
#define TROUPE_STORAGE_CHECKPOINT_CHECKPOINT_FOLDER_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/disk/file_lock.h"

namespace troupe {

struct CheckpointFolderOptions {
  std::string directory;     // made where it is missing
  std::string holder;        // "job 3, pid 17 on host7", for others' messages
  bool starts_anew = false;  // goes on from no checkpoint that lies there
  bool overwrite = false;    // what an earlier run left may go
  // With `overwrite`, of a run that started anew and goes on: its own
  // checkpoint that it goes on from. What is of later steps may go, too.
  std::string goes_on_from = "";
  // Of an earlier attempt of the same job, as its holder says of itself: it may
  // still hold the directory (a stopped process), and loses it. Empty: none.
  std::string supersedes = "";
  // A run that goes on: one that has something to lose. It does so where there
  // is no room for the lock, as it would if the disk were full a step later,
  // and holds the directory before it writes there.
  bool outlasts_full_disk = false;
};

// Whether a run goes on in `directory`, where its checkpoints go. `resume` is
// the job's: `latest` or `auto`, a checkpoint that lies there, or the directory
// itself, whatever names lead to both. A run that resumes nothing, or from
// elsewhere, a folder of checkpoints below the directory among that, is new to
// it. Ask before the run has written any.
bool GoesOnIn(const std::string& directory, const std::string& resume);

// One thread at a time.
class CheckpointFolder {
 public:
  // FailedPrecondition where another holds the directory, naming it, and where
  // a run that starts anew finds checkpoints that may not go; both say what to
  // do. Else as PrepareCheckpointDirectory. A file system without locks costs a
  // warning in the log.
  static absl::StatusOr<std::unique_ptr<CheckpointFolder>> Open(
      const CheckpointFolderOptions& options);

  // Holds the directory where Open found no room for that. Before anything is
  // written there; the errors are Open's. OK where it is held already.
  absl::Status Hold();
  // Why it is not held yet; OK: it is.
  const absl::Status& held() const { return held_; }

  // FailedPrecondition where a later attempt has taken the directory from this
  // one: ask before anything there gets or loses its name. And where it is not
  // held yet: its error.
  absl::Status CheckHeld() const;
  bool superseded() const { return lock_.has_value() && lock_->superseded(); }

  // A checkpoint is there, and known to be. The first one takes the place of
  // all that a run which starts anew overwrites: those lose their names, the
  // newest first, for that is what `latest` would take. What is left of them
  // comes to `trees`, which the caller removes. The error names one that keeps
  // its name: the checkpoint is there all the same, and the next one tries
  // again, or RetryOverwritten.
  absl::Status Committed(const std::string& path,
                         std::vector<std::string>& trees);
  // Whether the user should hear of that error: it is not what Committed said
  // the last time that this was asked.
  bool IsNews(const absl::Status& stays);
  // Whether a checkpoint is there and one that it overwrites keeps its name.
  bool has_left() const { return left_; }
  absl::Status RetryOverwritten(std::vector<std::string>& trees);

 private:
  explicit CheckpointFolder(const CheckpointFolderOptions& options)
      : options_(options) {}
  absl::Status TakeHold();
  absl::StatusOr<std::vector<std::string>> Overwritten() const;

  const CheckpointFolderOptions options_;
  absl::Status held_;
  std::optional<FileLock> lock_;  // none also where the file system has none
  std::vector<std::string> overwritten_;  // paths, newest first
  bool left_ = false;                     // some of them, by a checkpoint
  absl::Status told_;                     // of what keeps its name
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_CHECKPOINT_FOLDER_H_
