// Whether an error is of the storage: what a file system said, or that it does
// not hold what was written. A checkpoint that fails so is written again when
// the disk has room or can be reached again. One that fails because a device
// or a value is broken fails again. The mark is a payload of the status, as
// that of proto/base/local_cause.h, and set where the file system is called:
// Annotate keeps it.
#ifndef TROUPE_STORAGE_DISK_STORAGE_ERROR_H_
#define TROUPE_STORAGE_DISK_STORAGE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace troupe {

inline constexpr char kStorageError[] = "troupe/storage-error";

// The same, of the storage; OK stays OK.
inline absl::Status OfStorage(absl::Status status) {
  if (!status.ok()) status.SetPayload(kStorageError, absl::Cord());
  return status;
}

// The same without the mark: of a storage that the state is read from while it
// is written to another.
inline absl::Status NotOfStorage(absl::Status status) {
  status.ErasePayload(kStorageError);
  return status;
}

inline bool IsOfStorage(const absl::Status& status) {
  return status.GetPayload(kStorageError).has_value();
}

// Whether what was to be written may be written later. An argument that is wrong
// stays wrong.
inline bool MayBeWrittenLater(const absl::Status& status) {
  return IsOfStorage(status) && !absl::IsInvalidArgument(status);
}

// Of those, that there is no room for now: the disk is full, or a quota or the
// descriptors are used up.
inline bool IsNoRoom(const absl::Status& status) {
  return IsOfStorage(status) && absl::IsResourceExhausted(status);
}

}  // namespace troupe

#endif  // TROUPE_STORAGE_DISK_STORAGE_ERROR_H_
