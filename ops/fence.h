// A Fence is a place in the queue of a thread that calls ops on an asynchronous
// device (device.h): behind all that the thread had enqueued when it recorded
// the fence. It lets another thread's queue wait for that place, on the device:
//
//   MatMul(device, ...);                                    // one thread
//   std::unique_ptr<Fence> fence = device.Record(FenceUse::kOrder);
//
//   device.WaitFor(*fence);                                 // another thread
//   MatMul(device, ...);                    // enqueued; runs after the first
//
// Any thread may use and destroy it; not after its device.
#ifndef TROUPE_OPS_FENCE_H_
#define TROUPE_OPS_FENCE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace troupe {

// What a fence is for; one that also tells the time may cost more.
enum class FenceUse { kOrder, kTiming };

class Fence {
 public:
  Fence() = default;
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  virtual ~Fence() = default;

  // Sleeps until all before the fence has run, or never will; also where the
  // device has failed meanwhile, for another reason. Then nothing before it
  // uses memory any more. The error as Synchronize's.
  virtual absl::Status Await() = 0;

  // Whether Await would not sleep.
  virtual bool HasRun() const = 0;

  // From `earlier` to this one, by the device's clock; negative where `earlier`
  // came later after all. REQUIRES that both are for timing, of one device, and
  // have run without error.
  virtual int64_t NanosSince(const Fence& earlier) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_OPS_FENCE_H_
