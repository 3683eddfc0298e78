#include "tests/cluster/brief_calibration.h"

#include "absl/time/time.h"
#include "ops/cpu/device.h"
#include "proto/base/clock.h"
#include "worker/calibrate/calibrate.h"
#include "worker/calibrate/calibration_file.h"

namespace troupe {

absl::Status CalibrateBriefly(int threads) {
  const auto device = NewCpuDevice({.threads = threads});
  const RealClock clock;
  return LoadOrMeasure(
             {.path = DefaultCalibrationFile(threads),
              .threads = threads,
              .device = CalibrationDevice()},
             [&] {
               return Calibrate(
                   *device, clock,
                   {.compute = {.each = absl::Milliseconds(1), .shrink = 16},
                    .link = {.bytes = 1 << 16, .repeats = 1}});
             })
      .status();
}

}  // namespace troupe
