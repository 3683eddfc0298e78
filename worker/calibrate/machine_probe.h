// A small computation whose time says how fast the processor is now. It lies in
// the first cache and needs no memory, so that it measures the core, not what
// ran before it, and runs as the calibration's did, which repeats it after
// products that keep all cores busy.
#ifndef TROUPE_WORKER_CALIBRATE_MACHINE_PROBE_H_
#define TROUPE_WORKER_CALIBRATE_MACHINE_PROBE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "ops/device.h"
#include "proto/base/clock.h"

namespace troupe {

// Microseconds of it, some 20 on a core of 3 GHz; it takes twice that, since a
// first run is not counted.
double ProbeUs(const Clock& clock);

// Runs it twice: the microseconds of the second time, when all that it needs is
// there.
double SecondRunUs(const Clock& clock, absl::FunctionRef<void()> run);

// The probe's time right after work that keeps all threads of the CPU busy, as
// between two steps: the median of several. ResourceExhausted where the device
// lacks the memory for the work.
absl::StatusOr<double> CalibrateProbeUs(Device& device, const Clock& clock);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_MACHINE_PROBE_H_
