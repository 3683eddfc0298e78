// A calibration as rough as it is quick, for workers of tests: a whole one
// takes seconds, and such tests do not ask how good predictions are.
#ifndef TROUPE_TESTS_CLUSTER_BRIEF_CALIBRATION_H_
#define TROUPE_TESTS_CLUSTER_BRIEF_CALIBRATION_H_

#include "absl/status/status.h"

namespace troupe {

// Measures for some milliseconds, and leaves the file where workers with this
// number of threads look for it (DefaultCalibrationFile); a valid one that is
// there stays.
absl::Status CalibrateBriefly(int threads);

}  // namespace troupe

#endif  // TROUPE_TESTS_CLUSTER_BRIEF_CALIBRATION_H_
