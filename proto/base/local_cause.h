// Whose fault an error is: of this machine (a path that is not there or not
// allowed here, a disk, memory, a device), so that another machine may well do
// what this one could not; or of the request, which would fail anywhere. The
// mark is a payload of the status: Annotate keeps it, and it ends with the
// process, which says it in a field of its own (RankEnded.local_cause).
#ifndef TROUPE_PROTO_BASE_LOCAL_CAUSE_H_
#define TROUPE_PROTO_BASE_LOCAL_CAUSE_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace troupe {

inline constexpr char kLocalCause[] = "troupe/local-cause";

// The same, of this machine; OK stays OK.
inline absl::Status OfThisMachine(absl::Status status) {
  if (!status.ok()) status.SetPayload(kLocalCause, absl::Cord());
  return status;
}

inline bool IsOfThisMachine(const absl::Status& status) {
  return status.GetPayload(kLocalCause).has_value();
}

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_LOCAL_CAUSE_H_
