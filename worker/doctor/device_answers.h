// Whether a device still computes: it is asked for something small, and has so
// long to answer. A driver that hangs costs the caller that time and no more.
//
//   const auto ask = AsksDevice(device, absl::Seconds(2));
//   const Finding finding = ask();
#ifndef TROUPE_WORKER_DOCTOR_DEVICE_ANSWERS_H_
#define TROUPE_WORKER_DOCTOR_DEVICE_ANSWERS_H_

#include <functional>

#include "absl/time/time.h"
#include "ops/device.h"
#include "worker/doctor/finding.h"

namespace troupe {

// kFail: it does not do within `limit` what it is asked for, or does it
// wrongly; the text says which device and what it said. Borrows the device. All
// copies of the function share one thread, which alone calls the device, since
// a device keeps something for each thread that ever did; a thread that hangs
// is asked nothing more and left behind. Thread-safe.
std::function<Finding()> AsksDevice(Device& device, absl::Duration limit);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_DEVICE_ANSWERS_H_
