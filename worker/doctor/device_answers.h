// Whether a device still computes: it is asked for something small, and has so
// long to answer. A driver that hangs costs the caller that time and no more.
//
//   const DeviceAsker ask(device, absl::Seconds(2));
//   const Finding finding = ask();
//   const absl::Status fresh = ask.StartAfresh();  // between two jobs
#ifndef TROUPE_WORKER_DOCTOR_DEVICE_ANSWERS_H_
#define TROUPE_WORKER_DOCTOR_DEVICE_ANSWERS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ops/device.h"
#include "worker/doctor/finding.h"

namespace troupe {

// All copies share one thread, which alone calls the device, since a device
// keeps something for each thread that ever did; a thread that hangs is asked
// nothing more and left behind. Thread-safe.
class DeviceAsker {
 public:
  // Borrows the device.
  DeviceAsker(Device& device, absl::Duration limit);

  // kFail: it does not do within `limit` what it is asked for, or does it
  // wrongly; the text says which device and what it said.
  Finding operator()() const;

  // Device::StartAfresh while no question is in the device: those that come
  // meanwhile wait. An error also where one has not come back for `limit`: then
  // the device is not touched, for the thread may be in it still.
  absl::Status StartAfresh() const;

 private:
  class Asker;
  std::shared_ptr<Asker> asker_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_DEVICE_ANSWERS_H_
