// A number in shared memory that some ranks advance and others wait for, on
// Linux' futex: waiting costs no processor time, and advancing costs a system
// call only where somebody sleeps.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SHARED_COUNTER_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SHARED_COUNTER_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace troupe {

// Lies in shared memory, in a cache line of its own. Any thread of any process
// may call anything.
class alignas(64) SharedCounter {
 public:
  // What was written before Set is visible to readers of its value by Get.
  uint32_t Get() const { return value_.load(std::memory_order_acquire); }
  void Set(uint32_t value) {
    value_.store(value);  // before the look for sleepers
    if (sleepers_.load() != 0) Wake();
  }

  // One more, where several write.
  void Advance() {
    value_.fetch_add(1);
    if (sleepers_.load() != 0) Wake();
  }

  // Returns when the value is not `seen`, on Wake, after `timeout`, or for no
  // reason at all: look again.
  void Sleep(uint32_t seen, absl::Duration timeout);
  // Sleepers return, though the value is as it was.
  void Wake();

 private:
  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SHARED_COUNTER_H_
