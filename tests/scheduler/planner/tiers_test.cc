// What the planner says of tiers of memory: fields, refusals, advice.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "proto/plan/worker_refusal.h"
#include "scheduler/planner/check_devices.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(const MemorySpec& memory) {
  JobSpec job = ExampleJob({});
  *job.mutable_memory() = memory;
  return std::string(ResolveJob(job).status().message());
}

TEST(Tiers, EveryFieldIsSet) {
  const MemorySpec memory = ResolveJob(ExampleJob({}))->memory();
  EXPECT_EQ(memory.optimizer(), "device");
  EXPECT_EQ(memory.parameters(), "device");
  EXPECT_EQ(memory.gradients(), "device");
  EXPECT_EQ(memory.activations(), "device");
}

TEST(Tiers, RefusesOtherNames) {
  MemorySpec memory;
  memory.set_optimizer("hots");
  EXPECT_THAT(ErrorOf(memory),
              AllOf(HasSubstr("memory.optimizer: "), HasSubstr("host")));
  memory.set_optimizer("nvme");
  EXPECT_EQ(ErrorOf(memory), "");
  memory.set_gradients("nvme");
  EXPECT_THAT(ErrorOf(memory),
              AllOf(HasSubstr("memory.gradients: "), HasSubstr("host")));
}

void AddBudget(Tier tier, int64_t bytes, WorkerDescription& worker) {
  TierBudget& budget = *worker.add_budgets();
  budget.set_tier(tier);
  budget.set_bytes(bytes);
}

TEST(Tiers, RefusesChunksThatAreNone) {
  MemorySpec memory;
  memory.set_device_bytes(1 << 20);
  EXPECT_THAT(ErrorOf(memory), AllOf(HasSubstr("memory.device_bytes: "),
                                     HasSubstr("set memory.chunk_megabytes")));
  for (const char* const chunk : {"many", "0", "-1", "nan", "inf", "1e9", ""}) {
    memory.set_parameters("host");
    memory.set_chunk_megabytes(chunk);
    EXPECT_THAT(ErrorOf(memory), HasSubstr("memory.chunk_megabytes: "))
        << chunk;
  }
  for (const char* const chunk : {"auto", "64", "0.5"}) {
    memory.set_chunk_megabytes(chunk);
    EXPECT_EQ(ErrorOf(memory), "") << chunk;
  }
  memory.set_device_bytes(-1);
  EXPECT_THAT(ErrorOf(memory), HasSubstr("memory.device_bytes: "));
  memory.clear_device_bytes();
  memory.set_parameters("device");
  EXPECT_THAT(ErrorOf(memory), AllOf(HasSubstr("memory.chunk_megabytes: "),
                                     HasSubstr("leave it out")));
}

TEST(Tiers, RefusesADiskThatAWorkerLacks) {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_memory()->set_optimizer("nvme");
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  for (WorkerDescription& worker : workers) {
    AddBudget(HOST, 1 << 30, worker);
  }
  AddBudget(NVME, 1 << 30, workers[0]);
  EXPECT_EQ(CompilePlan(job, workers).status(),
            ForWorkers(absl::InvalidArgumentError(
                "memory.optimizer: worker worker-1 has no nvme tier; start it "
                "with --nvme DIRECTORY --nvme-size BYTES, or use host")));
  AddBudget(NVME, 1 << 30, workers[1]);
  EXPECT_EQ(CompilePlan(job, workers).status(), absl::OkStatus());
}

// A job of one rank, and whether it fits a worker.
class Compiled {
 public:
  explicit Compiled(const char* optimizer) : job_(ExampleJob({.blocks = 6})) {
    job_.mutable_memory()->set_optimizer(optimizer);
  }

  int64_t Need(Tier tier) const {
    return BytesIn(ExamplePlan(job_).roles(0), tier);
  }
  absl::Status With(int64_t device, int64_t host, int64_t nvme) const {
    std::vector<WorkerDescription> workers = ExampleWorkers(1);
    workers[0].clear_budgets();
    AddBudget(DEVICE, device, workers[0]);
    AddBudget(HOST, host, workers[0]);
    if (nvme > 0) AddBudget(NVME, nvme, workers[0]);
    return CompilePlan(job_, workers).status();
  }

 private:
  JobSpec job_;
};

TEST(Tiers, EachHasItsBudget) {
  const Compiled nvme("nvme");
  const int64_t device = nvme.Need(DEVICE);
  const int64_t host = nvme.Need(HOST);
  const int64_t disk = nvme.Need(NVME);
  EXPECT_EQ(nvme.With(device, host, disk), absl::OkStatus());
  EXPECT_THAT(std::string(nvme.With(device, host - 1, disk).message()),
              AllOf(HasSubstr("host memory needs"), HasSubstr("fetched"),
                    HasSubstr("(overflows here)")));
  EXPECT_THAT(
      std::string(nvme.With(device, host, disk - 1).message()),
      AllOf(HasSubstr("nvme memory needs"), HasSubstr("optimizer_moments")));
}

// What rests on a disk that is too small may rest higher up.
TEST(Tiers, AdvisesTheWayUp) {
  const Compiled device("device");
  const Compiled host("host");
  const Compiled nvme("nvme");
  EXPECT_THAT(std::string(nvme.With(device.Need(DEVICE), host.Need(HOST),
                                    nvme.Need(NVME) - 1)
                              .message()),
              AllOf(HasSubstr("memory.optimizer: device ("),
                    HasSubstr("memory.optimizer: host (")));
}

// Then nothing is left of which chunks would be.
TEST(Tiers, AdvisesTheWayUpOfTheOnlyValueOfChunks) {
  JobSpec job = ExampleJob({.blocks = 6});
  job.mutable_memory()->set_parameters("host");
  job.mutable_memory()->set_chunk_megabytes("auto");
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  workers[0].clear_budgets();
  AddBudget(DEVICE, 1 << 30, workers[0]);
  AddBudget(HOST, 4096, workers[0]);
  EXPECT_THAT(
      std::string(CompilePlan(job, workers).status().message()),
      HasSubstr("memory.parameters: device and no memory.chunk_megabytes ("));
  job.mutable_memory()->set_parameters("device");
  job.mutable_memory()->clear_chunk_megabytes();
  EXPECT_EQ(CompilePlan(job, workers).status(), absl::OkStatus());
}

// The least device says how much stays there, and the job's own word where that
// is less.
TEST(Tiers, ChunksFillTheLeastDevice) {
  JobSpec job = ExampleJob({.data = 2, .blocks = 6});
  job.mutable_memory()->set_parameters("host");
  const int64_t least = BytesIn(ExamplePlan(job).roles(0), DEVICE);
  job.mutable_memory()->set_chunk_megabytes("auto");
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  for (WorkerDescription& worker : workers) {
    worker.clear_budgets();
    AddBudget(DEVICE, 1 << 30, worker);
    AddBudget(HOST, 1 << 30, worker);
  }
  const auto used = [&] {
    return BytesIn(CompilePlan(job, workers)->roles(0), DEVICE);
  };
  const int64_t all = used();
  EXPECT_GT(all, least);
  const int64_t some = (least + all) / 2;
  workers[1].mutable_budgets(0)->set_bytes(some);
  EXPECT_LE(used(), some);
  EXPECT_GT(used(), least);
  EXPECT_EQ(CompilePlan(job, workers)->job().memory().device_bytes(), some);
  job.mutable_memory()->set_device_bytes(least);
  EXPECT_EQ(used(), least);
}

// The device has room for all but the states.
TEST(Tiers, AdvisesThemWhereTheyFit) {
  const Compiled device("device");
  const Compiled host("host");
  const Compiled nvme("nvme");
  const int64_t room = host.Need(DEVICE);
  ASSERT_LT(room, device.Need(DEVICE));
  EXPECT_THAT(std::string(device.With(room, host.Need(HOST), 0).message()),
              AllOf(HasSubstr("memory.optimizer: host ("),
                    HasSubstr("with which it fits"),
                    Not(HasSubstr("memory.optimizer: nvme"))));
  EXPECT_THAT(
      std::string(
          device.With(room, nvme.Need(HOST), nvme.Need(NVME)).message()),
      AllOf(HasSubstr("memory.optimizer: nvme ("),
            Not(HasSubstr("memory.optimizer: host"))));
  // What is advised is taken.
  EXPECT_EQ(host.With(room, host.Need(HOST), 0), absl::OkStatus());
  EXPECT_EQ(nvme.With(room, nvme.Need(HOST), nvme.Need(NVME)),
            absl::OkStatus());
}

}  // namespace
}  // namespace troupe
