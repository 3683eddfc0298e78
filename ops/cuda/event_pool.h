// CUDA's events, kept when they are given back: an instruction takes one or
// two, and making one costs more than recording it. Waits for them sleep.
#ifndef TROUPE_OPS_CUDA_EVENT_POOL_H_
#define TROUPE_OPS_CUDA_EVENT_POOL_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ops/fence.h"

namespace troupe {

// Thread-safe. Of one device, which is current whenever it is called.
class EventPool {
 public:
  EventPool() = default;
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  // REQUIRES that all are given back.
  ~EventPool();

  // One that tells the time only where that is its use.
  absl::StatusOr<cudaEvent_t> Take(FenceUse use) ABSL_LOCKS_EXCLUDED(mutex_);
  void Give(cudaEvent_t event, FenceUse use) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::vector<cudaEvent_t>& Of(FenceUse use)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return use == FenceUse::kTiming ? timing_ : order_;
  }

  absl::Mutex mutex_;
  std::vector<cudaEvent_t> order_ ABSL_GUARDED_BY(mutex_);
  std::vector<cudaEvent_t> timing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_EVENT_POOL_H_
