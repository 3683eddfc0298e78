// Lets tests that have their buffers in host memory use a communicator whose
// buffers lie on a device: each buffer is copied there before a call, and back
// after it, all of it, whatever the call did. A call returns when it is done,
// as if it were not enqueued.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_ON_DEVICE_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_ON_DEVICE_H_

#include <memory>

#include "ops/device.h"
#include "worker/collective/communicator.h"

namespace troupe {

struct OnDeviceOptions {
  Device& device;    // borrowed
  bool meet = true;  // of each call (CommOptions)
};
std::unique_ptr<Communicator> BuffersOnDevice(
    std::unique_ptr<Communicator> communicator, const OnDeviceOptions& options);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_ON_DEVICE_H_
