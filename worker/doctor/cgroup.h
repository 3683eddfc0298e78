// What the control groups of this process allow it, in containers less than the
// machine has: /sys/fs/cgroup, in version 2 and in version 1.
#ifndef TROUPE_WORKER_DOCTOR_CGROUP_H_
#define TROUPE_WORKER_DOCTOR_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

// Empty where nothing limits.
struct CgroupLimits {
  std::optional<double> cores;
  std::optional<int64_t> memory_bytes;
};

// The least over the groups of this process and those above them. `root` is put
// before the paths of the kernel's files: empty but in tests.
CgroupLimits ReadCgroupLimits(const std::string& root);

// Cores of version 2's cpu.max: "200000 100000" is 2, "max 100000" no limit.
// Version 1 has the same two numbers in two files, -1 for no limit.
std::optional<double> ParseCpuMax(absl::string_view text);
// Bytes of memory.max or memory.limit_in_bytes: "max", or as much as no machine
// has, is no limit.
std::optional<int64_t> ParseMemoryMax(absl::string_view text);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_CGROUP_H_
