#include "tests/equivalence/cluster_of_threads.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/group_staging.h"
#include "proto/plan/groups.h"
#include "proto/plan/meeting.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/planner/planner.h"
#include "storage/engine/make_engine.h"
#include "storage/tier/allocator.h"
#include "tests/equivalence/shard_board.h"
#include "tests/storage/temp_dir.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"
#include "worker/rank/device_allocator.h"
#include "worker/rank/group_staging_memory.h"

namespace troupe {
namespace {

constexpr int64_t kBudgetBytes = int64_t{1} << 30;

std::vector<TierBudget> Budgets() {
  std::vector<TierBudget> budgets(3);
  budgets[0].set_tier(DEVICE);
  budgets[1].set_tier(HOST);
  budgets[2].set_tier(NVME);
  for (TierBudget& budget : budgets) budget.set_bytes(kBudgetBytes);
  return budgets;
}

// Memory that is full of NaN at first, as a device's may be: a read of memory
// that was never written is found out.
class PoisonedAllocator final : public TierAllocator {
 public:
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    ASSIGN_OR_RETURN(void* const data, host_.Allocate(bytes));
    std::memset(data, 0xff, bytes);
    return data;
  }
  void Free(void* data, size_t bytes) override { host_.Free(data, bytes); }

 private:
  HostAllocator host_;
};

// The group carried so, on all levels; one that a test added to a plan, too.
Group OverBackend(Group group, const std::string& backend) {
  if (group.carriers().empty()) group.add_carriers();
  for (Group::Carrier& carrier : *group.mutable_carriers()) {
    carrier.set_backend(backend);
    for (Group::Carrier::OfLevel& level : *carrier.mutable_levels()) {
      level.clear_backends();
      level.add_backends(backend);
    }
  }
  return group;
}

// What one rank has, and what it reports.
class Rank final : public RankListener {
 public:
  Rank(int rank, const TrainOptions& options, const Plan& plan,
       const std::string& nvme, ShardBoard& board, InMemoryStore& store)
      : rank_(rank),
        options_(options),
        board_(board),
        store_(store),
        nvme_(nvme),
        device_(options.new_device ? options.new_device()
                                   : NewCpuDevice({.threads = 1})),
        device_memory_(*device_),
        pinned_memory_(*device_),
        arenas_(Budgets(), Sources()),
        io_(options.new_io
                ? options.new_io(rank)
                : MakeIoEngine({.kind = "thread_pool", .depth = 4}).value()),
        resources_{*device_, arenas_, *io_, clock_},
        plan_(Assigned(plan)),
        loop_(
            {.plan = plan_,
             .resume = options.resume,
             .trace_every = options.trace_every,
             .checkpoint_token = "test",
             .ran_before = options.ran_before,
             .name = absl::StrCat("worker-", rank),
             .checks_data = options.checks_data && rank == 0,
             .reads_late = options.reads_late,
             .collective_timeout = options.collective_timeout,
             .save_pauses = options.save_pauses,
             .build_units = options.build_units},
            resources_, store,
            [this, &store](const Plan& plan, int rank) {
              return Connect(plan, rank, store);
            },
            *this) {}

  void Run(const std::vector<TrainLoop*>& loops) {
    loops_ = loops;
    status = loop_.Run();
    if (options_.on_ended) options_.on_ended(rank_, loop_.kept(), *plan_);
    // One that was asked to stop has left its shard before.
    if (status.ok() || loop_.stopped()) return;
    board_.Fail();
    store_.Abort(status);
  }
  TrainLoop& loop() { return loop_; }
  size_t bytes_left() const { return arenas_.used(); }
  int64_t staged_bytes() const {
    const auto ledger = (*arenas_.Find(HOST))->ledger();
    const auto item = ledger.find(kGroupStagingItem);
    return item == ledger.end() ? 0 : static_cast<int64_t>(item->second.peak);
  }

  absl::Status status;
  std::vector<StepRecord> steps;
  std::vector<std::vector<double>> sums;  // of each step
  std::vector<RankTimeline> timelines;
  std::vector<uint64_t> sent_bytes;
  std::vector<CheckpointRecord> checkpoints;
  std::vector<std::string> warnings;

 private:
  TierArenas::Sources Sources() {
    const bool is_host = device_->has_host_memory();
    using Allocator = TierAllocator;
    Allocator& device =
        is_host ? static_cast<Allocator&>(host_memory_) : device_memory_;
    Allocator& host =
        is_host ? static_cast<Allocator&>(host_memory_) : pinned_memory_;
    NvmeTier nvme = {.directory = nvme_, .cluster = "threads"};
    if (options_.new_nvme_io) {
      nvme.new_engine = [this] { return options_.new_nvme_io(rank_); };
    }
    return {.device = device, .host = host, .nvme = nvme};
  }

  std::shared_ptr<const Plan> Assigned(const Plan& plan) {
    auto assigned = std::make_shared<Plan>(AssignmentPlan(plan, rank_));
    if (options_.change_assignment) {
      options_.change_assignment(rank_, *assigned);
    }
    return assigned;
  }

  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      const Plan& plan, int rank, InMemoryStore& store) {
    std::vector<std::unique_ptr<Communicator>> communicators(
        plan.groups_size());
    const auto watch = std::make_shared<Watch>();
    for (const int g : MeetingGroups(plan.roles(0))) {
      const Group group = OverBackend(plan.groups(g), options_.backend);
      const std::vector<int> members = MembersOf(plan.mesh(), group, rank);
      const auto at = std::find(members.begin(), members.end(), rank);
      const int number = GroupNumber(plan.mesh(), group, rank);
      const Group::Carrier& carrier = CarrierOf(plan.groups(g), number);
      ASSIGN_OR_RETURN(StagingMemory staging,
                       GroupStagingMemory(plan, g, carrier, arenas_));
      if (options_.staging_grows) staging.bytes = 0;
      const CommunicatorSeat seat = {
          .group = {.name = GroupName(plan.mesh(), group, rank),
                    .ranks = members},
          .rank = static_cast<int>(at - members.begin()),
          .store = &store,
          .timeout = absl::Seconds(20),
          .device = device_.get(),
          .staging = staging,
          .watch = watch};
      const bool creates = options_.create && MovesDeviceMemory(carrier);
      ASSIGN_OR_RETURN(communicators[g],
                       creates ? options_.create(seat)
                               : CreateCommunicator(group, number, seat));
      connected_.push_back(communicators[g].get());
    }
    return communicators;
  }

  absl::Status OnWarning(const std::string& warning) override {
    warnings.push_back(warning);
    return absl::OkStatus();
  }
  absl::Status OnReady(int64_t first_step) override { return absl::OkStatus(); }
  absl::Status OnStep(const StepRecord& record, absl::Span<const double> all,
                      const RankTimeline* timeline) override {
    steps.push_back(record);
    sums.emplace_back(all.begin(), all.end());
    if (timeline != nullptr) timelines.push_back(*timeline);
    sent_bytes.push_back(0);
    for (const Communicator* communicator : connected_) {
      sent_bytes.back() += communicator->sent_bytes();
    }
    if (options_.on_step) options_.on_step(rank_, record, loops_);
    return absl::OkStatus();
  }
  absl::Status OnShardWritten(const WrittenShard& shard) override {
    if (options_.on_shard) {
      RETURN_IF_ERROR(options_.on_shard(rank_, shard, loops_));
    }
    board_.Add(rank_, shard);
    return absl::OkStatus();
  }
  absl::Status OnUnwritten(int64_t step, const std::string& error) override {
    if (options_.on_unwritten) options_.on_unwritten(rank_, step, error);
    board_.AddUnwritten(rank_, step, error);
    return absl::OkStatus();
  }
  absl::StatusOr<absl::optional<std::vector<ShardRecord>>> AwaitShards(
      int64_t step) override {
    return board_.Await(step);
  }
  absl::Status OnCommitted(const CheckpointRecord& checkpoint) override {
    checkpoints.push_back(checkpoint);
    board_.Commit(checkpoint.step());
    return absl::OkStatus();
  }
  absl::StatusOr<CheckpointEnd> AwaitEnd(int64_t step) override {
    if (options_.on_await) options_.on_await(rank_, step, loops_);
    return board_.AwaitEnd(rank_, step);
  }

  const int rank_;
  const TrainOptions& options_;
  ShardBoard& board_;
  InMemoryStore& store_;
  const RealClock clock_;
  const std::string nvme_;
  PoisonedAllocator host_memory_;
  const std::unique_ptr<Device> device_;
  DeviceAllocator device_memory_;
  PinnedAllocator pinned_memory_;
  const TierArenas arenas_;
  const std::unique_ptr<IoEngine> io_;
  const RankResources resources_;
  const std::shared_ptr<const Plan> plan_;
  TrainLoop loop_;
  std::vector<TrainLoop*> loops_;
  std::vector<const Communicator*> connected_;  // the loop's, while it runs
};

std::vector<WorkerDescription> Workers(int count, int on_host = 0) {
  std::vector<WorkerDescription> workers(count);
  for (int i = 0; i < count; ++i) {
    if (on_host > 0) workers[i].set_host(absl::StrCat("host-", i / on_host));
    workers[i].set_name(absl::StrCat("worker-", i));
    workers[i].set_device("cpu");
    workers[i].set_threads(1);
    workers[i].set_host_cores(2);
    for (const TierBudget& budget : Budgets()) {
      *workers[i].add_budgets() = budget;
    }
  }
  return workers;
}

// As for ranks on GPUs that share one.
void StageThroughHost(int ranks, Plan& plan) {
  std::vector<WorkerDescription> workers = Workers(ranks);
  for (WorkerDescription& worker : workers) worker.mutable_gpu();
  for (Group& group : *plan.mutable_groups()) group.clear_carriers();
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
}

}  // namespace

absl::Status TrainingRun::status() const {
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> CompileForThreads(const JobSpec& job, int ranks,
                                       int on_host) {
  return CompilePlan(job, Workers(ranks, on_host));
}

TrainingRun Train(const JobSpec& job, const TrainOptions& options) {
  absl::StatusOr<Plan> plan =
      CompileForThreads(job, options.ranks, options.ranks_on_host);
  CHECK(plan.ok()) << plan.status().ToString();
  if (options.new_device && !options.new_device()->has_host_memory()) {
    StageThroughHost(options.ranks, *plan);
  }
  if (options.change_plan) options.change_plan(*plan);
  ShardBoard board(options.ranks);
  InMemoryStore store;
  const TempDir own;
  const std::string nvme = options.nvme.empty() ? own.path() : options.nvme;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<TrainLoop*> loops;
  for (int r = 0; r < options.ranks; ++r) {
    ranks.push_back(
        std::make_unique<Rank>(r, options, *plan, nvme, board, store));
    loops.push_back(&ranks.back()->loop());
  }
  std::vector<std::thread> threads;
  for (const auto& rank : ranks) {
    threads.emplace_back([&] { rank->Run(loops); });
  }
  for (std::thread& thread : threads) thread.join();
  TrainingRun run;
  run.plan = *std::move(plan);
  for (const auto& rank : ranks) {
    run.statuses.push_back(rank->status);
    run.steps.push_back(rank->steps);
    run.sums.push_back(rank->sums);
    run.timelines.push_back(rank->timelines);
    run.sent_bytes.push_back(rank->sent_bytes);
    run.checkpoints.insert(run.checkpoints.end(), rank->checkpoints.begin(),
                           rank->checkpoints.end());
    run.staged_bytes.push_back(rank->staged_bytes());
    run.bytes_left += rank->bytes_left();
  }
  for (const auto& entry : std::filesystem::directory_iterator(own.path())) {
    run.files_left.push_back(entry.path());
  }
  run.warnings = ranks[0]->warnings;
  return run;
}

}  // namespace troupe
