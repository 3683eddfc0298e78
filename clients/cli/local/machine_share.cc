#include "clients/cli/local/machine_share.h"

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "proto/base/cores.h"

namespace troupe {
namespace {

// "MemAvailable:  123 kB" of /proc/meminfo; 0 where that cannot be read.
int64_t AvailableBytes() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  int64_t kilobytes = 0;
  for (std::string unit; in >> key >> kilobytes; std::getline(in, unit)) {
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

WorkerShare ShareOfMachine(int workers, const WorkerShare& wanted) {
  WorkerShare share = wanted;
  if (share.threads == 0) {
    share.threads = std::max(1, UsableCoreCount() / workers);
  }
  const int64_t available = AvailableBytes();
  if (available == 0) return share;
  if (share.host_memory.empty()) {
    share.host_memory =
        absl::StrCat(available / 10 * (share.gpu ? 5 : 2) / workers);
  }
  if (share.device_memory.empty() && !share.gpu) {
    share.device_memory = absl::StrCat(available / 10 * 8 / workers);
  }
  return share;
}

std::vector<std::string> ShareArguments(const WorkerShare& share, int worker) {
  std::vector<std::string> flags;
  if (share.threads > 0) {
    flags.insert(flags.end(), {"--threads", absl::StrCat(share.threads)});
  }
  if (!share.device_memory.empty()) {
    flags.insert(flags.end(), {"--device-memory", share.device_memory});
  }
  if (!share.host_memory.empty()) {
    flags.insert(flags.end(), {"--host-memory", share.host_memory});
  }
  if (!share.nvme.empty()) {
    flags.insert(flags.end(),
                 {"--nvme", share.nvme, "--nvme-size", share.nvme_size});
  }
  for (const std::string& root : share.roots) {
    flags.insert(flags.end(), {"--root", root});
  }
  if (share.gpu) {
    flags.insert(flags.end(), {"--device", absl::StrCat("cuda:", worker)});
  }
  return flags;
}

}  // namespace troupe
