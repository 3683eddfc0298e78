#include "worker/calibrate/calibrate.h"

#include "proto/base/status.h"
#include "worker/calibrate/overhead.h"

namespace troupe {

absl::StatusOr<Calibration> Calibrate(Device& device, const Clock& clock,
                                      const CalibrateOptions& options) {
  Calibration calibration;
  RETURN_IF_ERROR(
      MeasureComputeRates(device, clock, options.compute, calibration));
  ASSIGN_OR_RETURN(const double overhead, MeasureInstructionOverheadUs(clock));
  calibration.set_instruction_overhead_us(overhead);
  ASSIGN_OR_RETURN(*calibration.mutable_loopback(),
                   MeasureLoopback(clock, options.link));
  return calibration;
}

}  // namespace troupe
