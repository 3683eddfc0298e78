#include "worker/collective/shared_memory/copy_choice.h"

#include <algorithm>
#include <cstring>

#include "proto/base/status.h"
#include "worker/collective/shared_memory/stream_copy.h"

namespace troupe {

void CopyAs(CopyKind kind, void* to, const void* from, size_t bytes) {
  if (kind == CopyKind::kStream) {
    StreamCopy(to, from, bytes);
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

bool CopyChoice::Due(int64_t bytes) {
  if (bytes < kBytesMin) return false;
  const bool due = bytes_ >= kBytesBetween;
  bytes_ = (due ? 0 : bytes_) + bytes;
  return due;
}

absl::Status CopyChoice::Try(Run run) {
  absl::Duration stream = absl::InfiniteDuration();
  absl::Duration ordinary = absl::InfiniteDuration();
  for (int turn = 0; turn < kTurns; ++turn) {
    ASSIGN_OR_RETURN(absl::Duration took, run(CopyKind::kStream));
    stream = std::min(stream, took);
    ASSIGN_OR_RETURN(took, run(CopyKind::kOrdinary));
    ordinary = std::min(ordinary, took);
  }
  kind_ = ordinary < stream ? CopyKind::kOrdinary : CopyKind::kStream;
  return absl::OkStatus();
}

}  // namespace troupe
