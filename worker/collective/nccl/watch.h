// Watches an NCCL communicator while an operation is under way: a thread that
// looks every few milliseconds whether NCCL reports an error or the deadline
// has passed, and then aborts the communicator, so that the lane's thread,
// asleep behind the stream, wakes.
#ifndef TROUPE_WORKER_COLLECTIVE_NCCL_WATCH_H_
#define TROUPE_WORKER_COLLECTIVE_NCCL_WATCH_H_

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/collective/nccl/comm.h"

namespace troupe {

class NcclWatch {
 public:
  // Borrows the communicator.
  explicit NcclWatch(NcclComm& comm);
  ~NcclWatch();
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;

  // Around an operation, on its thread. End says why the communicator was
  // aborted, if it was: DeadlineExceeded, or NCCL's error.
  void Begin(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop();

  NcclComm& comm_;
  absl::Mutex mutex_;
  bool under_way_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_NCCL_WATCH_H_
