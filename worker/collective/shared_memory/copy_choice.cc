#include "worker/collective/shared_memory/copy_choice.h"

#include <algorithm>
#include <cstring>

#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "worker/collective/shared_memory/stream_copy.h"

namespace troupe {
namespace {

constexpr int64_t kExchangeBytesMax = 128 << 10;

// From the slot that the next rank has filled in the phase before into ours.
void PassOn(const Phases& phases, CopyKind kind) {
  const SegmentMap& map = phases.map();
  const int next = (phases.rank() + 1) % phases.ranks();
  CopyAs(kind, map.in_slot({.rank = phases.rank(), .parity = phases.writes()}),
         map.in_slot({.rank = next, .parity = phases.reads()}),
         std::min(kExchangeBytesMax, map.slot_bytes()));
}

}  // namespace

void CopyAs(CopyKind kind, void* to, const void* from, size_t bytes) {
  if (kind == CopyKind::kStream) {
    StreamCopy(to, from, bytes);
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

bool CopyChoice::Due(int64_t bytes) {
  const bool due = bytes_ >= kBytesBetween;
  bytes_ = (due ? 0 : bytes_) + bytes;
  return due;
}

absl::Status CopyChoice::Try(Exchange exchange) {
  absl::Duration stream = absl::InfiniteDuration();
  absl::Duration ordinary = absl::InfiniteDuration();
  for (int turn = 0; turn < kTurns; ++turn) {
    ASSIGN_OR_RETURN(absl::Duration took, exchange(CopyKind::kStream));
    stream = std::min(stream, took);
    ASSIGN_OR_RETURN(took, exchange(CopyKind::kOrdinary));
    ordinary = std::min(ordinary, took);
  }
  kind_ = ordinary < stream ? CopyKind::kOrdinary : CopyKind::kStream;
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> TimeExchange(Phases& phases, CopyKind kind) {
  PassOn(phases, kind);  // what is read here was written the other way
  RETURN_IF_ERROR(phases.Next());
  const RealClock clock;
  const int64_t start = clock.MonotonicNanos();
  PassOn(phases, kind);
  RETURN_IF_ERROR(phases.Next());
  return absl::Nanoseconds(clock.MonotonicNanos() - start);
}

}  // namespace troupe
