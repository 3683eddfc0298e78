#include "worker/calibrate/calibrate.h"

#include "proto/base/status.h"
#include "worker/calibrate/machine_probe.h"
#include "worker/calibrate/overhead.h"
#include "worker/collective/shared_memory/memory_domain.h"

namespace troupe {

absl::StatusOr<Calibration> Calibrate(Device& device, const Clock& clock,
                                      const CalibrateOptions& options) {
  Calibration calibration;
  RETURN_IF_ERROR(
      MeasureComputeRates(device, clock, options.compute, calibration));
  ASSIGN_OR_RETURN(const double probe_us, CalibrateProbeUs(device, clock));
  calibration.set_probe_us(probe_us);
  ASSIGN_OR_RETURN(const double overhead, MeasureInstructionOverheadUs(clock));
  calibration.set_instruction_overhead_us(overhead);
  ASSIGN_OR_RETURN(*calibration.mutable_loopback(),
                   MeasureLink("gloo", clock, options.link));
  if (!MemoryDomain().empty()) {
    ASSIGN_OR_RETURN(*calibration.mutable_shared_memory(),
                     MeasureLink("shared_memory", clock, options.link));
  }
  return calibration;
}

absl::Status WarmUp(Device& device, const Clock& clock) {
  Calibration unused;
  return MeasureComputeRates(
      device, clock, {.each = absl::ZeroDuration(), .shrink = 16}, unused);
}

}  // namespace troupe
