// What another process has used so far, as the kernel counts it.
#ifndef TROUPE_TESTS_BENCH_SCHEDULER_SCALE_PROCESS_USAGE_H_
#define TROUPE_TESTS_BENCH_SCHEDULER_SCALE_PROCESS_USAGE_H_

#include <sys/types.h>

#include <cstdint>

namespace troupe {

struct ProcessUsage {
  double cpu_seconds = 0;  // of all its threads
  int64_t resident_bytes = 0;
  int64_t resident_bytes_max = 0;  // since its start
  int threads = 0;
};

// From /proc. CHECKs that there is such a process.
ProcessUsage UsageOf(pid_t pid);

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_SCHEDULER_SCALE_PROCESS_USAGE_H_
