// Lets tests that have their buffers in host memory use a communicator whose
// buffers lie on a device: each buffer is copied there before a call, and back
// after it, all of it, whatever the call did.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_ON_DEVICE_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_ON_DEVICE_H_

#include <memory>

#include "ops/device.h"
#include "worker/collective/communicator.h"

namespace troupe {

// Borrows the device.
std::unique_ptr<Communicator> BuffersOnDevice(
    std::unique_ptr<Communicator> communicator, Device& device);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_ON_DEVICE_H_
