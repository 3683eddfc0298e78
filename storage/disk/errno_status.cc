#include "storage/disk/errno_status.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/local_cause.h"
#include "storage/disk/storage_error.h"

namespace troupe {
namespace {

using absl::StatusCode;

struct ErrnoRow {
  int error;
  absl::string_view name;
  StatusCode code;
  absl::string_view text;
};

constexpr ErrnoRow kTable[] = {
    {ENOENT, "ENOENT", StatusCode::kNotFound, "no such file or directory"},
    {EEXIST, "EEXIST", StatusCode::kAlreadyExists, "it exists already"},
    {ENOTEMPTY, "ENOTEMPTY", StatusCode::kAlreadyExists,
     "the directory is not empty"},
    {ENOSPC, "ENOSPC", StatusCode::kResourceExhausted,
     "the file system is full; free space or choose another directory"},
    {EDQUOT, "EDQUOT", StatusCode::kResourceExhausted,
     "the disk quota is used up; free space or choose another directory"},
    {ENOMEM, "ENOMEM", StatusCode::kResourceExhausted,
     "the kernel is out of memory"},
    {EMFILE, "EMFILE", StatusCode::kResourceExhausted,
     "this process has too many open files; raise ulimit -n"},
    {ENFILE, "ENFILE", StatusCode::kResourceExhausted,
     "the machine has too many open files; raise fs.file-max"},
    {EIO, "EIO", StatusCode::kUnavailable,
     "the device reports an error; see the kernel's log, distrust the disk"},
    {EACCES, "EACCES", StatusCode::kPermissionDenied,
     "permission denied; check owner and mode"},
    {EPERM, "EPERM", StatusCode::kPermissionDenied, "not permitted"},
    {EROFS, "EROFS", StatusCode::kPermissionDenied,
     "the file system is read-only"},
    {EFBIG, "EFBIG", StatusCode::kOutOfRange,
     "the file grows past the file system's or ulimit -f's limit"},
    {EISDIR, "EISDIR", StatusCode::kFailedPrecondition, "it is a directory"},
    {ENOTDIR, "ENOTDIR", StatusCode::kFailedPrecondition,
     "a part of the path is not a directory"},
    {ENAMETOOLONG, "ENAMETOOLONG", StatusCode::kInvalidArgument,
     "the name is too long"},
    {EINVAL, "EINVAL", StatusCode::kInvalidArgument,
     "the file system does not do that"},
    {ELOOP, "ELOOP", StatusCode::kFailedPrecondition,
     "too many symbolic links"},
    {EXDEV, "EXDEV", StatusCode::kFailedPrecondition,
     "the two paths are on different file systems, or the path or a link in it "
     "leads out of its root"},
    {ETXTBSY, "ETXTBSY", StatusCode::kFailedPrecondition,
     "it is a program that runs"},
    {EBUSY, "EBUSY", StatusCode::kUnavailable, "it is in use"},
    {ENODEV, "ENODEV", StatusCode::kUnavailable, "the device is gone"},
    {ENXIO, "ENXIO", StatusCode::kUnavailable, "the device is gone"},
    {ESTALE, "ESTALE", StatusCode::kUnavailable,
     "the network file system lost the file"},
    {ETIMEDOUT, "ETIMEDOUT", StatusCode::kUnavailable,
     "the network file system does not answer"},
};

absl::Status Marked(absl::Status status) {
  return OfStorage(OfThisMachine(std::move(status)));
}

}  // namespace

absl::Status ErrnoStatus(int error, absl::string_view what) {
  CHECK_GT(error, 0);
  for (const ErrnoRow& row : kTable) {
    if (row.error == error) {
      return Marked(absl::Status(
          row.code, absl::StrCat(what, ": ", row.name, ": ", row.text)));
    }
  }
  const char* name = strerrorname_np(error);
  return Marked(absl::InternalError(absl::StrCat(
      what, ": ", name == nullptr ? absl::StrCat("errno ", error) : name, ": ",
      strerrordesc_np(error) == nullptr ? "unknown" : strerrordesc_np(error))));
}

}  // namespace troupe
