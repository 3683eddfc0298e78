// Whether a process of this machine runs, and whether it is still the same one:
// the kernel reuses process ids, but not an id and its start together. A file
// that names a process says too where its id means that, for a folder may be
// shared.
#ifndef TROUPE_PROTO_BASE_PROCESS_STATE_H_
#define TROUPE_PROTO_BASE_PROCESS_STATE_H_

#include <cstdint>
#include <string>

namespace troupe {

struct ProcessId {
  int64_t pid = 0;
  uint64_t start_ticks = 0;  // since boot; field 22 of /proc/PID/stat
  bool operator==(const ProcessId&) const = default;
};

// The process that has this id now; start_ticks 0 where none does.
ProcessId Identify(int64_t pid);

// Whether any process with this id runs. A zombie does not, once the last of
// its threads has ended: then it holds no file and no lock any more.
bool IsRunning(int64_t pid);
// Whether this very process runs.
bool IsRunning(const ProcessId& process);

// The name of this machine, "localhost" where it has none.
std::string HostName();

// Where the id of a process means that process.
struct ProcessSpace {
  std::string host;   // its name, for people
  std::string boot;   // the kernel's, since it began; empty where unknown
  uint64_t pids = 0;  // the PID namespace: containers have each their own
  bool operator==(const ProcessSpace&) const = default;
};
ProcessSpace ThisProcessSpace();

// From now on this process gets a SIGTERM when its parent ends, however that
// ends. `parent` is what the parent says that it is (init's id is one like
// others: in a container, `troupe` may have it). False: it is gone already.
bool EndWithParent(int64_t parent);

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_PROCESS_STATE_H_
