// Checks of what the system lets one process hold: open files and locked memory
// (ulimit -n and ulimit -l).
#ifndef TROUPE_WORKER_DOCTOR_LIMITS_H_
#define TROUPE_WORKER_DOCTOR_LIMITS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "worker/doctor/finding.h"

namespace troupe {

Finding CheckFileLimit();
Finding CheckLockLimit();

// As in getrlimit; the greatest uint64_t is no limit.
struct ResourceLimit {
  uint64_t soft = 0;
  uint64_t hard = 0;  // up to which a user may raise the soft one
};
Finding JudgeFileLimit(const ResourceLimit& limit);

struct LockLimit {
  uint64_t bytes = 0;
  std::string kernel;  // its release, "6.1.0-13-amd64"
};
Finding JudgeLockLimit(const LockLimit& limit);

// Whether a kernel's release is the version or later; what is no release is
// not.
struct KernelVersion {
  int major = 0;
  int minor = 0;
};
bool IsAtLeast(absl::string_view release, const KernelVersion& version);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_LIMITS_H_
