// A GPU's measurement of itself: as calibrate.h, but of work that is enqueued
// many calls at a time, since a training step waits for the device once and not
// after each op, and with products large enough to fill it.
#ifndef TROUPE_WORKER_CALIBRATE_CALIBRATE_GPU_H_
#define TROUPE_WORKER_CALIBRATE_CALIBRATE_GPU_H_

#include <string>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "proto/base/clock.h"
#include "proto/cluster.pb.h"
#include "worker/calibrate/calibrate.h"

namespace troupe {

// Everything but `device` and `threads` of the message. ResourceExhausted where
// the device lacks 900 MiB, 150 MiB where sizes are shrunk.
absl::StatusOr<Calibration> CalibrateGpu(Device& device, const Clock& clock,
                                         CalibrateOptions options);

// Where it is kept, by the GPU's name, and for what it is valid, as cuDNN's
// attention is faster: calibration-nvidia-h200.textproto, "cuda NVIDIA H200,
// cuDNN 9.19.0, v4".
std::string GpuCalibrationFile(const std::string& gpu_name);
std::string GpuCalibrationDevice(const Gpu& gpu);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_CALIBRATE_GPU_H_
