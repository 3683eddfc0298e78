// Which copies hand data to other ranks sooner, found out on the spot.
//
// A line that another core has read lies in its cache too, and an ordinary
// store must first take it away there. Where the cores are far apart that is a
// round trip for every 64 bytes, and StreamCopy, around the caches, is many
// times as fast. Where they share a cache, ordinary stores cost little, and the
// other core finds the data there. Which is the case depends on where the ranks
// run, and on a virtual machine it changes within minutes.
//
// So members try both when they join, and again whenever they have passed a GiB
// on, which takes a hundred times as long as the trial. All count the same
// operations, so all try at once; then each decides for itself, since what is
// copied is the same either way.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_COPY_CHOICE_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_COPY_CHOICE_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace troupe {

enum class CopyKind { kStream, kOrdinary };

// As StreamCopy, which it is for kStream; else as memcpy, of no bytes too.
void CopyAs(CopyKind kind, void* to, const void* from, size_t bytes);

// One thread at a time.
class CopyChoice {
 public:
  CopyKind kind() const { return kind_; }

  // An operation begins that passes `bytes` bytes on. Whether a trial is due:
  // before the first operation that is large enough to gain by it, and now and
  // then. Groups without one never touch what a trial needs.
  bool Due(int64_t bytes);

  // Makes runs by turns one way and the other, and keeps the way of the
  // shortest. `run` returns how long it took; its error is returned.
  using Run = absl::FunctionRef<absl::StatusOr<absl::Duration>(CopyKind kind)>;
  absl::Status Try(Run run);

  static constexpr int kTurns = 3;                // of each kind
  static constexpr int64_t kBytesMin = 32 << 10;  // of an operation
  static constexpr int64_t kBytesBetween = int64_t{1} << 30;

 private:
  CopyKind kind_ = CopyKind::kStream;
  int64_t bytes_ = kBytesBetween;  // since the last trial
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_COPY_CHOICE_H_
