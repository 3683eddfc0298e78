#include "storage/disk/job_lock.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"

namespace troupe {

absl::StatusOr<std::optional<FileLock>> TakeJobLock(
    const JobLockOptions& options) {
  const std::string path = absl::StrCat(options.directory, "/", options.name);
  absl::StatusOr<FileLock> lock = FileLock::Take(path, options.holder);
  if (absl::IsFailedPrecondition(lock.status()) &&
      !options.supersedes.empty() &&
      absl::StrContains(lock.status().message(), options.supersedes)) {
    LogWarning(absl::StrCat(options.directory, ": is taken from ",
                            lock.status().message(),
                            ", an earlier attempt of this job"));
    lock = FileLock::TakeFrom(path, options.holder, options.supersedes);
  }
  if (lock.ok()) return *std::move(lock);
  if (absl::IsUnimplemented(lock.status())) {
    LogWarning(absl::StrCat(lock.status().message(),
                            "; see that nobody else writes ", options.writes,
                            " there"));
    return std::nullopt;
  }
  if (!absl::IsFailedPrecondition(lock.status())) return lock.status();
  return absl::FailedPreconditionError(absl::StrCat(
      options.directory, ": ", lock.status().message(), " writes ",
      options.writes, " there; wait for its end, or give another directory"));
}

}  // namespace troupe
