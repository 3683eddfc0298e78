// What a benchmark computes on: the CPU, or a GPU of this machine, as a worker
// would open it.
#ifndef TROUPE_TESTS_BENCH_BENCH_DEVICE_H_
#define TROUPE_TESTS_BENCH_BENCH_DEVICE_H_

#include <string>

#include "proto/cluster.pb.h"
#include "worker/service/open_device.h"

namespace troupe {

struct BenchDeviceOptions {
  std::string device = "cpu";  // or "cuda:0"
  int threads = 1;             // of a CPU
};

// Ends the process where there is no such device.
OpenedDevice OpenBenchDevice(const BenchDeviceOptions& options);

// What a worker on the device would tell a scheduler of it: the GPU, and the
// budgets of its tiers; a CPU's are without bounds. Asks the GPU in a process
// of its own, since CUDA does not survive the forks of bench_ranks.h.
WorkerDescription DescribeBenchDevice(const BenchDeviceOptions& options);

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_BENCH_DEVICE_H_
