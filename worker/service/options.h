// What a worker is told on its command line, parsed. main.cc fills this in;
// everything below reads it.
#ifndef TROUPE_WORKER_SERVICE_OPTIONS_H_
#define TROUPE_WORKER_SERVICE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/trust/peer_trust.h"

namespace troupe {

struct WorkerOptions {
  std::string scheduler;  // HOST:PORT
  PeerTrust trust;        // how the two know each other
  std::string name = "worker-0";
  int threads = 0;             // intra-op threads; 0: one for each core
  std::string device = "cpu";  // or "cuda:0", "cuda:1", ...
  bool cudnn = true;           // on a GPU: attention by it where it can
  // Bytes; 0: 80 % of the RAM that is available, or 90 % of what is free on the
  // GPU.
  int64_t device_memory = 0;
  // Bytes; 0: what device memory leaves of the available RAM; of a worker on a
  // GPU half of that RAM, as it is page-locked.
  int64_t host_memory = 0;
  // The nvme tier: a directory, and how much of its disk; both or neither.
  std::string nvme;
  int64_t nvme_size = 0;  // bytes; whole blocks of 4096 count
  // "NAME=DIR", below which the paths of jobs lead (storage/disk/roots.h);
  // none: anywhere.
  std::vector<std::string> roots;
  std::string address = "127.0.0.1";  // where peers reach this worker
  std::string log_file;               // empty: stderr only
  std::string calibration_file;       // empty: the user's cache
  int64_t parent = 0;  // it ends when this process does; 0: with nobody
};

// Bytes of "8GiB", "512MiB", "1.5 GB", "4096". InvalidArgument says what is
// wrong and shows a good one.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);

// The ordinal of "cuda:0", nothing for "cpu". InvalidArgument names the flag.
absl::StatusOr<absl::optional<int>> GpuOrdinal(absl::string_view device);

// Fills in what was left 0 or empty from this machine; but for a GPU's memory,
// which open_device.h asks the GPU for. InvalidArgument names the flag.
absl::StatusOr<WorkerOptions> ResolveOptions(WorkerOptions options);

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_OPTIONS_H_
