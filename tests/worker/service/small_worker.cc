#include "tests/worker/service/small_worker.h"

#include <utility>
#include <vector>

#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "scheduler/planner/planner.h"
#include "storage/engine/make_engine.h"
#include "worker/rank/device_allocator.h"

namespace troupe {
namespace {

std::vector<TierBudget> Budgets() {
  TierBudget budget;
  budget.set_tier(DEVICE);
  budget.set_bytes(256 << 20);
  return {budget};
}

std::unique_ptr<TierAllocator> AllocatorOf(Device& device) {
  if (device.has_host_memory()) return std::make_unique<HostAllocator>();
  return std::make_unique<DeviceAllocator>(device);
}

}  // namespace

SmallWorker::SmallWorker() : SmallWorker(NewCpuDevice({.threads = 1})) {}

SmallWorker::SmallWorker(std::unique_ptr<Device> device)
    : device_(std::move(device)),
      allocator_(AllocatorOf(*device_)),
      arenas_(Budgets(), *allocator_),
      io_(MakeIoEngine({.kind = "thread_pool", .depth = 4}).value()),
      resources_{*device_, arenas_, *io_, clock_} {}

WorkerDescription SmallWorker::Description() const {
  WorkerDescription description;
  description.set_name("ada");
  description.set_threads(1);
  description.set_host_cores(1);
  *description.add_budgets() = Budgets()[0];
  return description;
}

Assignment Assign(const JobSpec& job, const SmallWorker& worker) {
  const absl::StatusOr<Plan> plan = CompilePlan(job, {worker.Description()});
  CHECK(plan.ok()) << plan.status().ToString();
  Assignment assignment;
  assignment.mutable_ref()->set_job(5);
  assignment.mutable_ref()->set_attempt(2);
  *assignment.mutable_plan() = AssignmentPlan(*plan, 0);
  assignment.add_worker_names("ada");
  assignment.set_collective_seconds_max(20);
  return assignment;
}

}  // namespace troupe
