// Checks of memory: how much there is, and whether ranks of this machine can
// share it.
#ifndef TROUPE_WORKER_DOCTOR_MEMORY_H_
#define TROUPE_WORKER_DOCTOR_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "worker/doctor/finding.h"

namespace troupe {

Finding CheckMemory();
// For a worker that had it when it started: its jobs are planned with it.
Finding CheckSharedMemoryStays();
// By what the shared-memory communicator does: it makes a segment (a memfd,
// which no size of /dev/shm limits), opens it again and watches a process.
Finding CheckSharedMemory();

struct MemoryAmounts {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;          // what Linux thinks it can give
  std::optional<int64_t> cgroup_bytes;  // what the control group allows
};
Finding JudgeMemory(const MemoryAmounts& memory);

// Bytes of "MemTotal:  123 kB" in the text of /proc/meminfo, by the key
// "MemTotal"; 0 where it is not there.
int64_t MeminfoBytes(absl::string_view meminfo, absl::string_view key);

// `domain` as in worker/collective/shared_memory/memory_domain.h.
Finding JudgeSharedMemory(const std::string& domain);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_MEMORY_H_
