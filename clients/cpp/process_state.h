// Whether a process of this machine runs, and whether it is still the same one:
// the kernel reuses process ids, but not an id and its start together.
#ifndef TROUPE_CLIENTS_CPP_PROCESS_STATE_H_
#define TROUPE_CLIENTS_CPP_PROCESS_STATE_H_

#include <cstdint>

namespace troupe {

struct ProcessId {
  int64_t pid = 0;
  uint64_t start_ticks = 0;  // since boot; field 22 of /proc/PID/stat
  bool operator==(const ProcessId&) const = default;
};

// The process that has this id now; start_ticks 0 where none does.
ProcessId Identify(int64_t pid);

// Whether any process with this id runs. A zombie does not.
bool IsRunning(int64_t pid);
// Whether this very process runs.
bool IsRunning(const ProcessId& process);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CPP_PROCESS_STATE_H_
