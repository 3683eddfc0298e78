#include "storage/checkpoint/checkpoint_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/resume_words.h"
#include "proto/base/status.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/disk/directory.h"
#include "storage/disk/job_lock.h"
#include "storage/disk/new_directory.h"
#include "storage/disk/path_calls.h"
#include "storage/disk/storage_error.h"

namespace troupe {
namespace {

constexpr char kLockFile[] = ".lock";

bool AreSame(const std::string& path, const std::string& other) {
  struct stat a;
  struct stat b;
  return StatPath(path, &a) == 0 && StatPath(other, &b) == 0 &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Those of later steps than this one, the newest first; none where it is not
// there.
absl::StatusOr<std::vector<std::string>> Beyond(const std::string& checkpoint,
                                                const std::string& directory) {
  std::vector<std::string> later;
  ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries,
                   ListCheckpoints(directory));
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    if (AreSame(it->path, checkpoint)) return later;
    later.push_back(it->path);
  }
  return std::vector<std::string>();
}

}  // namespace

bool GoesOnIn(const std::string& directory, const std::string& resume) {
  if (resume.empty() || IsResumeWord(resume)) return !resume.empty();
  if (HoldsCheckpoints(resume)) return AreSame(resume, directory);
  // A checkpoint lies where it is, and where a link to it is.
  return AreSame(absl::StrCat(resume, "/.."), directory) ||
         AreSame(ParentDirectory(resume), directory);
}

absl::StatusOr<std::unique_ptr<CheckpointFolder>> CheckpointFolder::Open(
    const CheckpointFolderOptions& options) {
  auto folder =
      std::unique_ptr<CheckpointFolder>(new CheckpointFolder(options));
  folder->held_ = folder->TakeHold();
  if (options.outlasts_full_disk && IsNoRoom(folder->held_)) return folder;
  RETURN_IF_ERROR(folder->held_);
  return folder;
}

absl::Status CheckpointFolder::Hold() {
  if (!held_.ok()) held_ = TakeHold();
  return held_;
}

absl::Status CheckpointFolder::TakeHold() {
  RETURN_IF_ERROR(PrepareCheckpointDirectory(options_.directory));
  if (!lock_.has_value()) {
    ASSIGN_OR_RETURN(
        lock_, TakeJobLock({.directory = options_.directory,
                            .name = kLockFile,
                            .holder = options_.holder,
                            .supersedes = options_.supersedes,
                            .writes = "its checkpoints"}));
  }
  ASSIGN_OR_RETURN(overwritten_, Overwritten());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> CheckpointFolder::Overwritten() const {
  if (!options_.starts_anew) {
    if (!options_.overwrite || options_.goes_on_from.empty()) {
      return std::vector<std::string>();
    }
    return Beyond(options_.goes_on_from, options_.directory);
  }
  ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries,
                   ListCheckpoints(options_.directory));
  if (!entries.empty() && !options_.overwrite) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.directory, ": an earlier run left ", entries.size(),
        entries.size() == 1 ? " checkpoint there, " : " checkpoints there, ",
        entries.back().path,
        " the last, which this one would replace and prune; go on from it "
        "(checkpoint.resume: latest), give another directory, or say that "
        "they may go (checkpoint.overwrite: true)"));
  }
  std::vector<std::string> overwritten;
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    overwritten.push_back(it->path);
  }
  return overwritten;
}

absl::Status CheckpointFolder::CheckHeld() const {
  RETURN_IF_ERROR(held_);
  if (!superseded()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(options_.directory,
                   ": a later attempt of this job has taken it"));
}

absl::Status CheckpointFolder::Committed(const std::string& path,
                                         std::vector<std::string>& trees) {
  auto& old = overwritten_;
  old.erase(std::remove(old.begin(), old.end(), path), old.end());
  return RetryOverwritten(trees);
}

bool CheckpointFolder::IsNews(const absl::Status& stays) {
  return std::exchange(told_, stays) != stays && !stays.ok();
}

absl::Status CheckpointFolder::RetryOverwritten(
    std::vector<std::string>& trees) {
  const absl::Status taken = TakeNames(overwritten_, trees);
  // This run may give a name that it took to one of its own.
  struct stat info;
  overwritten_.erase(std::remove_if(overwritten_.begin(), overwritten_.end(),
                                    [&](const std::string& path) {
                                      return LstatPath(path, &info) != 0 &&
                                             errno == ENOENT;
                                    }),
                     overwritten_.end());
  left_ = !overwritten_.empty();
  return Annotate(taken,
                  "checkpoint.overwrite: a checkpoint of the earlier run "
                  "stays, which `latest` may take for this one's; remove it");
}

}  // namespace troupe
