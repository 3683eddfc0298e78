// Check of what was measured of this machine: plans are predicted from it.
#ifndef TROUPE_WORKER_DOCTOR_CALIBRATION_H_
#define TROUPE_WORKER_DOCTOR_CALIBRATION_H_

#include <string>
#include <vector>

#include "proto/plan/bf16_gain.h"
#include "worker/doctor/finding.h"

namespace troupe {

Finding CheckCalibration();

struct CalibrationCache {
  std::string folder;
  std::vector<int> threads;  // for which it is measured, ascending
  Bf16Gain bf16;             // of the last of them
};
Finding JudgeCalibration(const CalibrationCache& cache);

// Those of the folder's files calibration-<threads>.textproto that are of this
// device, as in worker/calibrate/calibration_file.h.
struct CalibrationSearch {
  std::string folder;
  std::string device;
};
CalibrationCache ReadCalibrationCache(const CalibrationSearch& search);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_CALIBRATION_H_
