#include "absl/strings/str_cat.h"
#include "tests/bench/scheduler_scale/fleet_worker.h"

namespace troupe {
namespace {

constexpr int64_t kMiB = 1 << 20;

}  // namespace

WorkerDescription DescribeFleetWorker(const FleetOptions& options, int index) {
  WorkerDescription worker;
  worker.set_name(absl::StrCat("worker-", index));
  worker.set_host(absl::StrCat("host-", index / options.workers_per_host));
  worker.set_device("cpu");
  worker.set_threads(2);
  worker.set_host_cores(2 * options.workers_per_host);
  TierBudget& budget = *worker.add_budgets();
  budget.set_tier(DEVICE);
  budget.set_bytes(64 * 1024 * kMiB);
  Calibration& measured = *worker.mutable_calibration();
  measured.set_device("cpu of a fleet");
  measured.set_threads(2);
  for (const int size : {256, 512, 1024, 2048}) {
    MatmulRate& rate = *measured.add_matmul();
    rate.set_dtype(F32);
    rate.set_m(size);
    rate.set_n(size);
    rate.set_k(size);
    rate.set_flops_per_second(2e11);
  }
  AttentionRate& attention = *measured.add_attention();
  attention.set_dtype(F32);
  attention.set_length(1024);
  attention.set_head_dim(64);
  attention.set_forward_flops_per_second(1.5e11);
  attention.set_backward_flops_per_second(1.5e11);
  measured.set_memory_bytes_per_second(5e10);
  measured.set_optimizer_bytes_per_second(5e10);
  measured.set_instruction_overhead_us(5);
  measured.mutable_loopback()->set_latency_us(20);
  measured.mutable_loopback()->set_bytes_per_second(3e9);
  measured.set_elementwise_ops_per_second(1e9);
  worker.set_process_bytes(60 * kMiB);
  return worker;
}

}  // namespace troupe
