// An errno of the file system as a Status, each handled by name: the code tells
// a caller what kind of failure it was, the message what a person can do.
#ifndef TROUPE_STORAGE_DISK_ERRNO_STATUS_H_
#define TROUPE_STORAGE_DISK_ERRNO_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe {

// "<what>: ENOSPC: the file system is full; free space or choose another
// directory". `what` names the operation, the file and the offset. The cause
// lies in this machine (proto/base/local_cause.h), in its storage
// (storage_error.h). Requires error > 0.
absl::Status ErrnoStatus(int error, absl::string_view what);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DISK_ERRNO_STATUS_H_
