// An NCCL communicator that never blocks: its calls return while NCCL still
// sets up what they need, and another thread may abort it at any time. Each
// call makes its GPU the thread's current one: NCCL goes back to the one before
// when it is done, and for a thread without any that is the first GPU, where
// CUDA then makes a context.
#ifndef TROUPE_WORKER_COLLECTIVE_NCCL_COMM_H_
#define TROUPE_WORKER_COLLECTIVE_NCCL_COMM_H_

#include <nccl.h>

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ops/cuda/cuda_device.h"
#include "worker/collective/join_abort.h"

namespace troupe {

// Internal, or InvalidArgument where we called it wrongly: "ncclAllReduce:
// unhandled cuda error". In progress is no error.
absl::Status ToStatus(ncclResult_t result, absl::string_view call);

// How long to wait for what NCCL does behind a call.
struct SettleLimits {
  absl::Time deadline = absl::InfiniteFuture();
  const JoinAbort* abort = nullptr;  // ends the wait; null: nobody does
};
// Waits until `state`, which says what NCCL is at, is not in progress: how the
// call ended. Aborted where there is no state, because the communicator is not
// there any more, or at the abort; DeadlineExceeded.
absl::Status AwaitSettled(
    absl::string_view call, const SettleLimits& limits,
    absl::FunctionRef<absl::optional<ncclResult_t>()> state);

// Thread-safe; one thread enqueues.
class NcclComm {
 public:
  struct Place {
    ncclUniqueId id;
    int rank = 0;
    int size = 1;
    const JoinAbort* abort = nullptr;
  };
  // Waits until all members have called it, or for the deadline:
  // DeadlineExceeded; or until the abort: Aborted.
  static absl::StatusOr<std::unique_ptr<NcclComm>> Create(CudaDevice& device,
                                                          const Place& place,
                                                          absl::Time deadline);
  // Lets what the peers still receive from here go out first, within seconds.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // Runs `call`, which enqueues on a stream, and waits until NCCL has done so.
  // Aborted once Abort was called.
  absl::Status Enqueue(absl::string_view name,
                       absl::FunctionRef<ncclResult_t(ncclComm_t)> call);

  // What NCCL has noticed meanwhile; Aborted once Abort was called.
  absl::Status AsyncError();

  // Ends what is enqueued, unfinished. What NCCL gives back then may have to
  // wait for all that the GPU does, and so for operations of other
  // communicators (github.com/NVIDIA/nccl/issues/1013): abort those at the same
  // time. No other call waits meanwhile.
  void Abort();

 private:
  explicit NcclComm(CudaDevice& device) : device_(device) {}
  // Nothing: it was aborted.
  absl::optional<ncclResult_t> State() ABSL_LOCKS_EXCLUDED(mutex_);
  // Until the last call has had its effect.
  absl::Status Settle(absl::string_view call, const SettleLimits& limits) {
    return AwaitSettled(call, limits, [this] { return State(); });
  }
  void MakeCurrent() { cudaSetDevice(device_.ordinal()); }

  CudaDevice& device_;
  absl::Mutex mutex_;
  ncclComm_t comm_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null: aborted
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_NCCL_COMM_H_
