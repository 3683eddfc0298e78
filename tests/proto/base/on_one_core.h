// Runs something on a thread that may run on one core only, as a process that
// is pinned (taskset) does. That core's number is the argument.
#ifndef TROUPE_TESTS_PROTO_BASE_ON_ONE_CORE_H_
#define TROUPE_TESTS_PROTO_BASE_ON_ONE_CORE_H_

#include <sched.h>

#include <functional>
#include <thread>

#include "proto/base/check.h"
#include "proto/base/cores.h"

namespace troupe {

inline void OnOneCore(const std::function<void(int core)>& run) {
  std::thread([&run, core = UsableCores()[0]] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    run(core);
  }).join();
}

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_BASE_ON_ONE_CORE_H_
