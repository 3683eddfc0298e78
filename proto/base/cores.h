// The processor's cores that a program may run on: fewer than there are where
// it is pinned (taskset, numactl) or its control group has a cpuset, as those
// of containers often have. std::thread::hardware_concurrency() counts all.
#ifndef TROUPE_PROTO_BASE_CORES_H_
#define TROUPE_PROTO_BASE_CORES_H_

#include <vector>

namespace troupe {

// Of the calling thread, and so of those that it starts: their numbers,
// ascending; core 0 where the kernel says nothing.
std::vector<int> UsableCores();

// Their number, 1 or more: how many threads compute at once.
int UsableCoreCount();

// Of the host, or container, whichever cores a process is pinned to: those of
// its first process.
int HostCoreCount();

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_CORES_H_
