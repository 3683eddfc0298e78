// What one of N workers on this machine gets where the user does not say: an
// even share of the cores and of the memory that is free.
#ifndef TROUPE_CLIENTS_CLI_LOCAL_MACHINE_SHARE_H_
#define TROUPE_CLIENTS_CLI_LOCAL_MACHINE_SHARE_H_

#include <string>
#include <vector>

namespace troupe {

struct WorkerShare {
  int threads = 0;                 // 0: not said
  std::string device_memory;       // "2GiB"; empty: not said
  std::string host_memory;         // the same
  std::string nvme;                // a directory; empty: no nvme tier
  std::string nvme_size;           // "200GiB", of each worker
  std::vector<std::string> roots;  // "data=/mnt/data", for all
  bool gpu = false;                // each worker takes a GPU of its own
  bool operator==(const WorkerShare&) const = default;
};

// `wanted` with what it does not say filled in: cores / workers but at least 1,
// of the available memory / workers 80 % for the device tier and 20 % for the
// host tier; on GPUs half of it for the host tier, while the GPU says what it
// has itself. Memory stays unsaid where /proc/meminfo cannot be read. REQUIRES
// workers >= 1.
WorkerShare ShareOfMachine(int workers, const WorkerShare& wanted);

// The flags of troupe-worker that say so, of the worker with this index: it
// takes the GPU of the same.
std::vector<std::string> ShareArguments(const WorkerShare& share, int worker);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_MACHINE_SHARE_H_
