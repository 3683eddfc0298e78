#include "tests/bench/bench_device.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "proto/base/check.h"

namespace troupe {
namespace {

constexpr int64_t kNoBound = int64_t{1} << 40;

void AddBudget(Tier tier, int64_t bytes, WorkerDescription& worker) {
  TierBudget& budget = *worker.add_budgets();
  budget.set_tier(tier);
  budget.set_bytes(bytes);
}

WorkerOptions Resolved(const BenchDeviceOptions& options) {
  const absl::StatusOr<WorkerOptions> resolved =
      ResolveOptions({.threads = options.threads, .device = options.device});
  CHECK_OK(resolved.status());
  return *resolved;
}

OpenedDevice OpenOrEnd(WorkerOptions& options) {
  absl::StatusOr<OpenedDevice> opened = OpenDevice(options);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(opened);
}

}  // namespace

OpenedDevice OpenBenchDevice(const BenchDeviceOptions& options) {
  WorkerOptions resolved = Resolved(options);
  return OpenOrEnd(resolved);
}

WorkerDescription DescribeBenchDevice(const BenchDeviceOptions& options) {
  WorkerOptions resolved = Resolved(options);
  WorkerDescription worker;
  worker.set_device(options.device);
  worker.set_threads(resolved.threads);
  if (options.device == "cpu") {
    AddBudget(DEVICE, kNoBound, worker);
    AddBudget(HOST, kNoBound, worker);
    return worker;
  }
  int answer[2];
  CHECK_EQ(pipe(answer), 0);
  const pid_t asker = fork();
  CHECK_GE(asker, 0);
  if (asker == 0) {
    const OpenedDevice opened = OpenOrEnd(resolved);
    *worker.mutable_gpu() = *opened.gpu;
    AddBudget(DEVICE, resolved.device_memory, worker);
    AddBudget(HOST, resolved.host_memory, worker);
    CHECK(worker.SerializeToFileDescriptor(answer[1]));
    std::_Exit(0);
  }
  close(answer[1]);
  CHECK(worker.ParseFromFileDescriptor(answer[0]));
  close(answer[0]);
  int code = 0;
  waitpid(asker, &code, 0);
  if (code != 0) std::exit(1);  // it has said why
  return worker;
}

}  // namespace troupe
