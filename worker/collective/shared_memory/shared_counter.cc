#include "worker/collective/shared_memory/shared_counter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace troupe {

static_assert(std::atomic<uint32_t>::is_always_lock_free &&
              sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void SharedCounter::Sleep(uint32_t seen, absl::Duration timeout) {
  if (timeout <= absl::ZeroDuration()) return;
  const timespec relative = absl::ToTimespec(timeout);
  sleepers_.fetch_add(1);
  // Not FUTEX_PRIVATE_FLAG: processes share it. The kernel compares the value
  // once more, so that no Set is missed. EAGAIN, EINTR, ETIMEDOUT: look again.
  syscall(SYS_futex, &value_, FUTEX_WAIT, seen, &relative, nullptr, 0);
  sleepers_.fetch_sub(1);
}

void SharedCounter::Wake() {
  syscall(SYS_futex, &value_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace troupe
