// GPUs that are not there: what CudaDevice and NcclComm call of CUDA's runtime
// and of NCCL, for tests of which thread touches which GPU. As in CUDA, the
// current device of a thread is the first one until it sets another, and a call
// makes a context on the current device where there is none yet. As NCCL does,
// an abort goes back to the device that was current before.
//
// Linked in place of the runtime's functions by --wrap (BUILD.bazel).
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_NCCL_STAND_IN_GPUS_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_NCCL_STAND_IN_GPUS_H_

#include <set>

namespace troupe {

// Forgets all that was. REQUIRES that no device is open.
void ResetStandInGpus();

// The devices on which any thread has made a context.
std::set<int> StandInContexts();

// Whether events have run from now on; at first they have.
void SetEventsHaveRun(bool have_run);

// Waits until `count` events were asked for, or communicators aborted, since
// the reset.
void AwaitEventQueries(int count);
void AwaitNcclAborts(int count);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_NCCL_STAND_IN_GPUS_H_
