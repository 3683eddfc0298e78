// Which copies hand data to other ranks sooner, found out on the spot.
//
// A line that another core has read lies in its cache too, and an ordinary
// store must first take it away there. Where the cores are far apart that is a
// round trip for every 64 bytes, and StreamCopy, around the caches, is many
// times as fast. Where they are close, ordinary stores cost little, and the
// other core finds the data in a cache. Which is the case depends on where the
// ranks run, and on a virtual machine it changes within minutes.
//
// So members try both when they join, and again whenever they have passed half
// a GiB on: a trial takes less than one percent of the time of that. All count
// the same operations, so all try at once, and an exchange takes as long as its
// slowest rank. Each decides for itself: what is copied is the same either way.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_COPY_CHOICE_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_COPY_CHOICE_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/collective/shared_memory/phases.h"

namespace troupe {

enum class CopyKind { kStream, kOrdinary };

// As StreamCopy, which it is for kStream; else as memcpy, of no bytes too.
void CopyAs(CopyKind kind, void* to, const void* from, size_t bytes);

// One thread at a time.
class CopyChoice {
 public:
  CopyKind kind() const { return kind_; }

  // An operation begins that passes so many bytes on. Whether a trial is due:
  // before the first operation, and now and then.
  bool Due(int64_t bytes);

  // Has data exchanged by turns one way and the other, and keeps the way of the
  // shortest time. The error of an exchange.
  using Exchange =
      absl::FunctionRef<absl::StatusOr<absl::Duration>(CopyKind kind)>;
  absl::Status Try(Exchange exchange);

  static constexpr int kTurns = 4;  // of each kind
  static constexpr int64_t kBytesBetween = 512 << 20;

 private:
  CopyKind kind_ = CopyKind::kStream;
  int64_t bytes_ = kBytesBetween;  // since the last trial
};

// How long it takes that each rank copies what another has just written into
// its own slot, for the third to read. Within an operation, before its slots
// are used; all members call it. Errors as Phases::Next.
absl::StatusOr<absl::Duration> TimeExchange(Phases& phases, CopyKind kind);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_COPY_CHOICE_H_
