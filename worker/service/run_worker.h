// What `troupe-worker` does once its flags are read. These return the process's
// exit code and log what went wrong.
#ifndef TROUPE_WORKER_SERVICE_RUN_WORKER_H_
#define TROUPE_WORKER_SERVICE_RUN_WORKER_H_

#include "worker/service/options.h"

namespace troupe {

// Serves a scheduler until SIGTERM or SIGINT (0), or until it is refused (1).
// Call from main's thread, before there are others.
int RunWorker(const WorkerOptions& options);

// Measures this machine and writes the calibration file. With `describe`, the
// WorkerDescription goes to stdout, serialised, and a calibration that is
// there already is good enough; else a table for people.
struct RunCalibrateOptions {
  WorkerOptions worker;
  bool describe = false;
};
int RunCalibrate(const RunCalibrateOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_RUN_WORKER_H_
