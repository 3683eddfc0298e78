#include "ops/cuda/event_pool.h"

#include "ops/cuda/status.h"
#include "proto/base/status.h"

namespace troupe {

EventPool::~EventPool() {
  absl::MutexLock lock(&mutex_);
  for (const cudaEvent_t event : order_) cudaEventDestroy(event);
  for (const cudaEvent_t event : timing_) cudaEventDestroy(event);
}

absl::StatusOr<cudaEvent_t> EventPool::Take(FenceUse use) {
  {
    absl::MutexLock lock(&mutex_);
    std::vector<cudaEvent_t>& kept = Of(use);
    if (!kept.empty()) {
      const cudaEvent_t event = kept.back();
      kept.pop_back();
      return event;
    }
  }
  unsigned flags = cudaEventBlockingSync;
  if (use != FenceUse::kTiming) flags |= cudaEventDisableTiming;
  cudaEvent_t event = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaEventCreateWithFlags(&event, flags),
                           "cudaEventCreateWithFlags"));
  return event;
}

void EventPool::Give(cudaEvent_t event, FenceUse use) {
  absl::MutexLock lock(&mutex_);
  Of(use).push_back(event);
}

}  // namespace troupe
