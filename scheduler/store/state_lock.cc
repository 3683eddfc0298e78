#include "scheduler/store/state_lock.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"

namespace troupe {
namespace {

absl::Status Refused(const std::string& directory, const absl::Status& why) {
  const std::string where = absl::StrCat("state directory ", directory);
  if (absl::IsFailedPrecondition(why)) {
    return absl::FailedPreconditionError(absl::StrCat(
        where, ": ", why.message(),
        " uses it; stop that one, or give this one another directory"));
  }
  if (absl::IsPermissionDenied(why)) {
    return absl::PermissionDeniedError(
        absl::StrCat(where, ": ", why.message(),
                     "; give one that this user may write (--state)"));
  }
  return Annotate(why, where);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateLock>> StateLock::Take(
    const std::string& directory) {
  const absl::Status made = MakeDirectories(directory);
  if (!made.ok()) return Annotate(made, "state directory");
  absl::StatusOr<FileLock> lock =
      FileLock::Take(absl::StrCat(directory, "/lock"),
                     absl::StrCat("the scheduler with ", ThisProcessName()));
  if (!lock.ok()) return Refused(directory, lock.status());
  return std::unique_ptr<StateLock>(new StateLock(*std::move(lock)));
}

}  // namespace troupe
