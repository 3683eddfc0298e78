// Workers that differ in nothing but their speed.
#ifndef TROUPE_TESTS_SCHEDULER_PLANNER_UNEQUAL_WORKERS_H_
#define TROUPE_TESTS_SCHEDULER_PLANNER_UNEQUAL_WORKERS_H_

#include <vector>

#include "proto/cluster.pb.h"
#include "tests/scheduler/example_job.h"

namespace troupe {

// Each has a host of its own, and is times[w] as fast as 1e9 of everything in a
// second.
inline std::vector<WorkerDescription> UnequalWorkers(
    const std::vector<double>& times) {
  std::vector<WorkerDescription> workers =
      ExampleWorkers(static_cast<int>(times.size()));
  for (size_t w = 0; w < workers.size(); ++w) {
    workers[w].set_host(workers[w].name());
    workers[w].set_host_cores(1);
    Calibration& calibration = *workers[w].mutable_calibration();
    const double rate = 1e9 * times[w];
    calibration.mutable_matmul(0)->set_flops_per_second(rate);
    calibration.mutable_attention(0)->set_forward_flops_per_second(rate);
    calibration.mutable_attention(0)->set_backward_flops_per_second(rate);
    calibration.set_memory_bytes_per_second(rate);
    calibration.set_optimizer_bytes_per_second(rate);
    calibration.set_elementwise_ops_per_second(rate);
  }
  return workers;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_PLANNER_UNEQUAL_WORKERS_H_
