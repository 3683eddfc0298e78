// The flags that say what of its machine a worker has, which those that only
// measure it take, too.
#ifndef TROUPE_WORKER_SERVICE_DEVICE_FLAGS_H_
#define TROUPE_WORKER_SERVICE_DEVICE_FLAGS_H_

#include <CLI/CLI.hpp>

#include "worker/service/options.h"

namespace troupe {

// Declares them; parsing `app` fills in `options`, which must outlive it.
void AddDeviceFlags(CLI::App& app, WorkerOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_DEVICE_FLAGS_H_
