#include "proto/base/cores.h"

#include <sched.h>
#include <sys/types.h>

#include <cstddef>

namespace troupe {
namespace {

// Empty where the kernel does not say.
std::vector<int> CoresOf(pid_t process) {
  constexpr int kMost = 1 << 16;
  // The kernel wants room for as many as it was built for.
  for (int room = CPU_SETSIZE; room <= kMost; room *= 2) {
    std::vector<cpu_set_t> sets(room / CPU_SETSIZE);
    const size_t bytes = sets.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(process, bytes, sets.data()) != 0) continue;
    std::vector<int> cores;
    for (int core = 0; core < room; ++core) {
      if (CPU_ISSET_S(core, bytes, sets.data())) cores.push_back(core);
    }
    return cores;
  }
  return {};
}

}  // namespace

std::vector<int> UsableCores() {
  const std::vector<int> cores = CoresOf(0);
  return cores.empty() ? std::vector<int>{0} : cores;
}

int UsableCoreCount() { return static_cast<int>(UsableCores().size()); }

int HostCoreCount() {
  const std::vector<int> cores = CoresOf(1);
  return cores.empty() ? UsableCoreCount() : static_cast<int>(cores.size());
}

}  // namespace troupe
