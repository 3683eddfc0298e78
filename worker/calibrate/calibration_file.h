// A calibration takes seconds, so it is measured once for each machine and
// number of threads and kept in a file of the user's cache. Workers that start
// together take turns on a lock: the first measures, the others read. What was
// measured while others used the machine is kept for minutes only.
#ifndef TROUPE_WORKER_CALIBRATE_CALIBRATION_FILE_H_
#define TROUPE_WORKER_CALIBRATE_CALIBRATION_FILE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "worker/calibrate/machine_times.h"

namespace troupe {

// ${XDG_CACHE_HOME:-$HOME/.cache}/troupe/calibration-<threads>.textproto; under
// /tmp where neither variable is set. Where this process may run on fewer cores
// (proto/base/cores.h), whose threads wait for each other, it is another file:
// calibration-<threads>-on-<cores>.textproto.
std::string DefaultCalibrationFile(int threads);

// What a calibration is valid for, in its `device`: the processor's name, the
// instruction set that is used of it, and the version of what is measured.
// "cpu AMD EPYC 9R14, avx512_bf16, v4".
std::string CalibrationDevice();

struct CalibrationFileOptions {
  std::string path;
  int threads = 1;
  std::string device;         // must equal the file's
  bool measure_anew = false;  // even where the file is valid
  std::function<MachineTimes()> times = ReadMachineTimes;  // for tests
};

// The file's calibration. NotFound where there is none for this device and
// number of threads, or none that still holds; DataLoss where it is no such
// message.
absl::StatusOr<Calibration> ReadCalibration(
    const CalibrationFileOptions& options);

// The same where it is for this device and number of threads;
// else measures, and writes the file (atomically). A file that cannot be read
// or written costs a warning, never an error: then it is measured each time.
absl::StatusOr<Calibration> LoadOrMeasure(
    const CalibrationFileOptions& options,
    const std::function<absl::StatusOr<Calibration>()>& measure);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_CALIBRATION_FILE_H_
