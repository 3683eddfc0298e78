#include "tests/bench/bench_ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "scheduler/planner/planner.h"
#include "storage/engine/make_engine.h"
#include "storage/tier/allocator.h"
#include "tests/bench/timing_device.h"
#include "worker/collective/create_communicator.h"
#include "worker/engine/train_loop.h"

namespace troupe {
namespace {

// Where the time of one step went, by kernel.
struct Breakdown {
  std::map<std::string, double> seconds;
  double total = 0;
};

void Print(const Breakdown& breakdown) {
  std::vector<std::pair<double, std::string>> rows;
  double sum = 0;
  for (const auto& [name, seconds] : breakdown.seconds) {
    rows.emplace_back(seconds, name);
    sum += seconds;
  }
  std::sort(rows.rbegin(), rows.rend());
  rows.emplace_back(breakdown.total - sum, "outside of kernels");
  for (const auto& [seconds, name] : rows) {
    std::printf("  %7.1f ms %5.1f %%  %s\n", 1e3 * seconds,
                100 * seconds / breakdown.total, name.c_str());
  }
  std::fflush(stdout);
}

// False at the end of the pipe.
bool ReadByte(int pipe) {
  char byte;
  ssize_t count;
  do {
    count = read(pipe, &byte, 1);
  } while (count < 0 && errno == EINTR);
  CHECK_GE(count, 0);
  return count == 1;
}

void WriteByte(int pipe) { CHECK_EQ(write(pipe, "", 1), 1); }

// Between two steps it waits to be told to go on.
class Pacer final : public RankListener {
 public:
  struct Options {
    int go;
    int done;
    TimingDevice* timing;  // null: no breakdown
  };
  explicit Pacer(const Options& options) : options_(options) {}

  const Breakdown& last_step() const { return last_step_; }

  absl::Status OnReady(int64_t first_step) override { return Pause(); }
  absl::Status OnStep(const StepRecord& record,
                      const RankTimeline* timeline) override {
    if (options_.timing != nullptr) {
      last_step_ = {.seconds = options_.timing->seconds(),
                    .total = record.step_seconds()};
    }
    return Pause();
  }

  // The job has no checkpoints.
  absl::Status OnShardWritten(const WrittenShard& shard) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<std::string>> AwaitShards(int64_t step) override {
    return std::vector<std::string>();
  }
  absl::Status OnCommitted(const CheckpointRecord& checkpoint) override {
    return absl::OkStatus();
  }

 private:
  absl::Status Pause() {
    WriteByte(options_.done);
    if (!ReadByte(options_.go)) return absl::CancelledError("enough steps");
    if (options_.timing != nullptr) options_.timing->Reset();
    return absl::OkStatus();
  }

  const Options options_;
  Breakdown last_step_;
};

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
    const Plan& plan, int rank, KeyValueStore& store) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (const Group& group : plan.groups()) {
    const auto& ranks = group.ranks();
    CommunicatorSeat seat;
    seat.group = {.name = group.name(), .ranks = {ranks.begin(), ranks.end()}};
    seat.rank = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    seat.store = &store;
    CHECK_LT(seat.rank, ranks.size());  // all are data-parallel
    ASSIGN_OR_RETURN(communicators.emplace_back(),
                     CreateCommunicator(group.backend(), seat));
  }
  return communicators;
}

struct RankProcess {
  int rank;
  BenchRanksOptions options;
  int go;
  int done;
};

// The process of a rank, from its fork to its end.
void RunRank(const RankProcess& process, const Plan& plan, SharedStore& store) {
  auto cpu = NewCpuDevice({.threads = process.options.threads});
  std::unique_ptr<TimingDevice> timing;
  if (process.options.breakdown && process.rank == 0) {
    timing = std::make_unique<TimingDevice>(std::move(cpu));
  }
  Device& device = timing != nullptr ? static_cast<Device&>(*timing) : *cpu;
  HostAllocator allocator;
  TierBudget budget;
  budget.set_tier(DEVICE);
  budget.set_bytes(int64_t{1} << 40);  // whatever the plan needs
  const TierArenas arenas({budget}, allocator);
  const auto io = MakeIoEngine({.kind = "thread_pool", .depth = 4});
  CHECK_OK(io.status());
  const RealClock clock;
  Pacer pacer({.go = process.go, .done = process.done, .timing = timing.get()});
  const RankResources resources{device, arenas, **io, clock};
  TrainLoop loop(
      {.plan = std::make_shared<Plan>(AssignmentPlan(plan, process.rank))},
      resources,
      [&](const Plan& plan, int rank) { return Connect(plan, rank, store); },
      pacer);
  const absl::Status status = loop.Run();
  CHECK(absl::IsCancelled(status)) << status.ToString();
  if (timing != nullptr) Print(pacer.last_step());
}

}  // namespace

BenchRanks::BenchRanks(const Plan& plan, const BenchRanksOptions& options) {
  for (int rank = 0; rank < plan.ranks_size(); ++rank) {
    int go[2], done[2];
    CHECK_EQ(pipe(go), 0);
    CHECK_EQ(pipe(done), 0);
    pipes_.push_back({.go = go[1], .done = done[0]});
    processes_.push_back(fork());
    CHECK_GE(processes_.back(), 0);
    if (processes_.back() == 0) {
      for (const Pipes& parents : pipes_) {
        close(parents.go);
        close(parents.done);
      }
      RunRank({rank, options, go[0], done[1]}, plan, store_);
      _exit(0);
    }
    close(go[0]);
    close(done[1]);
  }
  AwaitAll();
}

BenchRanks::~BenchRanks() {
  for (const Pipes& pipes : pipes_) close(pipes.go);
  for (const pid_t process : processes_) waitpid(process, nullptr, 0);
  for (const Pipes& pipes : pipes_) close(pipes.done);
}

void BenchRanks::Step() {
  for (const Pipes& pipes : pipes_) WriteByte(pipes.go);
  AwaitAll();
}

void BenchRanks::AwaitAll() {
  for (size_t rank = 0; rank < pipes_.size(); ++rank) {
    CHECK(ReadByte(pipes_[rank].done)) << "rank " << rank << " failed";
  }
}

}  // namespace troupe
