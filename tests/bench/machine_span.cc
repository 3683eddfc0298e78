#include "tests/bench/machine_span.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/cores.h"
#include "proto/plan/machine_pace.h"
#include "worker/calibrate/calibration_file.h"
#include "worker/calibrate/machine_probe.h"

namespace troupe {
MachineSpan::MachineSpan(int threads)
    : threads_(threads > 0 ? threads : UsableCoreCount()),
      start_(ReadMachineTimes()) {}

void MachineSpan::Probe() {
  constexpr int kAtOnce = 3;
  for (int i = 0; i < kAtOnce; ++i) probes_us_.push_back(ProbeUs(clock_));
}

std::string MachineSpan::Line(double own_seconds) {
  Probe();
  MachineTimes end = ReadMachineTimes();
  end.own += own_seconds;
  WorkerDescription worker;
  worker.set_threads(threads_);
  worker.set_host_cores(UsableCoreCount());
  *worker.mutable_machine() = SharesBetween(start_, end);
  std::vector<double> sorted = probes_us_;
  std::sort(sorted.begin(), sorted.end());
  worker.mutable_machine()->set_probe_us(sorted[sorted.size() / 2]);
  const absl::StatusOr<Calibration> calibration =
      ReadCalibration({.path = DefaultCalibrationFile(threads_),
                       .threads = threads_,
                       .device = CalibrationDevice()});
  if (calibration.ok()) *worker.mutable_calibration() = *calibration;
  const MachinePace pace = *PaceOf({&worker});
  if (calibration.ok()) return absl::StrCat("machine: ", PaceText(pace));
  return absl::StrFormat(
      "machine: %.0f %% stolen, others used %.0f %%; not calibrated for "
      "workers of %d threads (troupe-worker calibrate --threads %d)",
      100 * pace.stolen(), 100 * pace.others(), threads_, threads_);
}

}  // namespace troupe
