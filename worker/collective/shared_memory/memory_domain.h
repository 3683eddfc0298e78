// Which processes can share memory with which, told before any of them tries.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_MEMORY_DOMAIN_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_MEMORY_DOMAIN_H_

#include <string>

namespace troupe {

// Names the kernel (since its boot), the PID namespace and the user of this
// process: processes of one name can open each other's segments. A host's name
// would say too much and too little: containers on one host have PID namespaces
// of their own, and containers on two hosts may have one name. Empty where this
// system has no memfd or pidfd, so that nothing can be shared.
std::string MemoryDomain();

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_MEMORY_DOMAIN_H_
