#include "tests/bench/bench_ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "ops/cuda/facts.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "proto/plan/groups.h"
#include "proto/plan/meeting.h"
#include "proto/plan/mesh.h"
#include "scheduler/planner/planner.h"
#include "storage/engine/make_engine.h"
#include "tests/bench/bench_device.h"
#include "tests/bench/timing_device.h"
#include "tests/bench/watched_allocator.h"
#include "worker/collective/create_communicator.h"
#include "worker/engine/train_loop.h"
#include "worker/rank/tier_arenas.h"

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

// What one of several processes has taken of a GPU's memory since
// `free_before`, if the others have what they want: the runtime keeps what it
// once took, so after a step this is the peak.
class GpuMemoryUse {
 public:
  explicit GpuMemoryUse(int ordinal)
      : ordinal_(ordinal), free_before_(Free()) {}

  void Look() { taken_ = std::max(taken_, free_before_ - Free()); }

  void Print(const Plan& plan) const {
    const int64_t planned = plan.prediction().ranks(0).peak_bytes();
    std::printf("device memory: %.0f MiB taken, %.0f MiB planned: %.3f\n",
                taken_ * 0x1p-20, planned * 0x1p-20,
                static_cast<double>(taken_) / planned);
    std::fflush(stdout);
  }

 private:
  int64_t Free() const {
    const absl::StatusOr<int64_t> free = FreeGpuBytes(ordinal_);
    CHECK_OK(free.status());
    return *free;
  }

  const int ordinal_;
  const int64_t free_before_;
  int64_t taken_ = 0;
};

// What of a rank's memory in a tier is there, by line item. A rank takes a
// block for each item, which its bytes tell from others.
class ItemMemory {
 public:
  ItemMemory(TierAllocator& inner, const RankPrediction& prediction, Tier tier)
      : prediction_(prediction), tier_(tier), allocator_(inner) {}

  TierAllocator& allocator() { return allocator_; }

  void Look(const TierArenas& arenas) {
    const auto ledger = (*arenas.Find(tier_))->ledger();
    const auto& blocks = allocator_.blocks();
    CHECK_EQ(ledger.size(), blocks.size());
    std::vector<bool> is_found(blocks.size());
    for (const auto& [item, use] : ledger) {
      size_t at = 0;
      while (at < blocks.size() &&
             (is_found[at] || blocks[at].bytes != use.used)) {
        ++at;
      }
      CHECK_LT(at, blocks.size()) << item;
      is_found[at] = true;
      resident_[item] = ResidentBytes(blocks[at]);
    }
  }

  void Print() const {
    size_t all_resident = 0;
    int64_t all_planned = 0;
    for (const MemoryItem& item : prediction_.memory()) {
      if (item.tier() != tier_ || item.bytes() == 0) continue;
      const size_t resident = resident_.at(item.item());
      PrintLine(item.item(), resident, item.bytes());
      all_resident += resident;
      all_planned += item.bytes();
    }
    if (all_planned > 0) {
      PrintLine("all of " + TierName(tier_), all_resident, all_planned);
    }
    std::fflush(stdout);
  }

 private:
  static void PrintLine(const std::string& what, size_t resident,
                        int64_t planned) {
    std::printf("  %-26s %9.2f MiB resident %9.2f MiB planned %6.2f\n",
                what.c_str(), resident * 0x1p-20, planned * 0x1p-20,
                static_cast<double>(resident) / planned);
  }

  const RankPrediction& prediction_;
  const Tier tier_;
  WatchedAllocator allocator_;
  std::map<std::string, size_t> resident_;
};

// What a byte in a pipe says.
constexpr char kGo = 'g';
constexpr char kDone = 'd';
constexpr char kEnd = 'e';  // so is the end of the pipe

char ReadByte(int pipe) {
  char byte = kEnd;
  ssize_t count;
  do {
    count = read(pipe, &byte, 1);
  } while (count < 0 && errno == EINTR);
  CHECK_GE(count, 0);
  return byte;
}

void WriteByte(int pipe, char byte) { CHECK_EQ(write(pipe, &byte, 1), 1); }

// Between two steps it waits to be told to go on.
class Pacer final : public RankListener {
 public:
  struct Options {
    int go;
    int done;
    TimingDevice* timing;        // null: no breakdown
    GpuMemoryUse* memory;        // null: on a CPU
    std::function<void()> look;  // after each step
  };
  explicit Pacer(const Options& options) : options_(options) {}

  const Breakdown& last_step() const { return last_step_; }
  const StepRecord& last_record() const { return last_record_; }

  absl::Status OnReady(int64_t first_step) override { return Pause(); }
  absl::Status OnStep(const StepRecord& record, absl::Span<const double> sums,
                      const RankTimeline* timeline) override {
    if (options_.timing != nullptr) {
      last_step_ = {.seconds = options_.timing->seconds(),
                    .total = record.step_seconds()};
    }
    // Asking the driver may take its time: not in what is timed.
    if (options_.memory != nullptr && record.step() < kWarmUpSteps) {
      options_.memory->Look();
    }
    options_.look();
    last_record_ = record;
    return Pause();
  }

  // The job has no checkpoints.
  absl::Status OnShardWritten(const WrittenShard& shard) override {
    return absl::OkStatus();
  }
  absl::Status OnUnwritten(int64_t step, const std::string& error) override {
    return absl::OkStatus();
  }
  absl::StatusOr<absl::optional<std::vector<ShardRecord>>> AwaitShards(
      int64_t step) override {
    return absl::nullopt;
  }
  absl::Status OnCommitted(const CheckpointRecord& checkpoint) override {
    return absl::OkStatus();
  }
  absl::StatusOr<CheckpointEnd> AwaitEnd(int64_t step) override {
    return CheckpointEnd();
  }

 private:
  absl::Status Pause() {
    WriteByte(options_.done, kDone);
    if (ReadByte(options_.go) == kEnd) {
      return absl::CancelledError("enough steps");
    }
    if (options_.timing != nullptr) options_.timing->Reset();
    return absl::OkStatus();
  }

  const Options options_;
  Breakdown last_step_;
  StepRecord last_record_;
};

void Print(const StepRecord& record) {
  for (const TierTraffic& tier : record.tiers()) {
    std::printf(
        "  %s: %.2f GB up, %.2f GB down, %.2f s of lanes; %.2f s of a step of "
        "%.2f s waited for it\n",
        TierName(tier.tier()).c_str(), tier.bytes_in() * 1e-9,
        tier.bytes_out() * 1e-9, tier.seconds(), tier.waited_seconds(),
        record.step_seconds());
  }
  std::fflush(stdout);
}

struct Place {
  int rank;
  Device& device;
  KeyValueStore& store;
};

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
    const Plan& plan, const Place& place) {
  std::vector<std::unique_ptr<Communicator>> communicators(plan.groups_size());
  for (const int g : MeetingGroups(plan.roles(0))) {
    const Group& group = plan.groups(g);
    const std::vector<int> ranks = MembersOf(plan.mesh(), group, place.rank);
    CommunicatorSeat seat;
    seat.group = {.name = GroupName(plan.mesh(), group, place.rank),
                  .ranks = ranks};
    seat.rank =
        std::find(ranks.begin(), ranks.end(), place.rank) - ranks.begin();
    seat.store = &place.store;
    seat.device = &place.device;
    const int number = GroupNumber(plan.mesh(), group, place.rank);
    ASSIGN_OR_RETURN(communicators[g], CreateCommunicator(group, number, seat));
  }
  return communicators;
}

struct RankProcess {
  int rank;
  BenchRanksOptions options;
  int go;
  int done;
};

std::vector<TierBudget> Unbounded() {
  std::vector<TierBudget> budgets(3);
  budgets[0].set_tier(DEVICE);
  budgets[1].set_tier(HOST);
  budgets[2].set_tier(NVME);
  // Whatever the plan needs.
  for (TierBudget& budget : budgets) budget.set_bytes(int64_t{1} << 40);
  return budgets;
}

// The process of a rank, from its fork to its end.
void RunRank(const RankProcess& process, const Plan& plan, SharedStore& store) {
  OpenedDevice opened = OpenBenchDevice(
      {.device = process.options.device, .threads = process.options.threads});
  const bool tells = process.options.breakdown && process.rank == 0;
  std::unique_ptr<TimingDevice> timing;
  absl::optional<GpuMemoryUse> memory;
  if (tells && opened.gpu.has_value()) {
    memory.emplace(GpuOrdinal(process.options.device)->value());
  } else if (tells) {
    timing = std::make_unique<TimingDevice>(std::move(opened.device));
  }
  Device& device =
      timing != nullptr ? static_cast<Device&>(*timing) : *opened.device;
  const RankPrediction& prediction = plan.prediction().ranks(process.rank);
  ItemMemory on_device(*opened.device_memory, prediction, DEVICE);
  ItemMemory on_host(*opened.host_memory, prediction, HOST);
  const bool items = process.options.memory_of == process.rank;
  const TierArenas arenas(
      Unbounded(),
      {.device = items ? on_device.allocator() : *opened.device_memory,
       .host = items ? on_host.allocator() : *opened.host_memory,
       .nvme = {.directory = process.options.nvme, .cluster = "bench"}});
  const auto io = MakeIoEngine({.kind = "thread_pool", .depth = 4});
  CHECK_OK(io.status());
  const RealClock clock;
  Pacer pacer({.go = process.go,
               .done = process.done,
               .timing = timing.get(),
               .memory = memory.has_value() ? &*memory : nullptr,
               .look = [&] {
                 if (!items) return;
                 on_device.Look(arenas);
                 on_host.Look(arenas);
               }});
  const RankResources resources{device, arenas, **io, clock};
  TrainLoop loop(
      {.plan = std::make_shared<Plan>(AssignmentPlan(plan, process.rank))},
      resources, store,
      [&](const Plan& plan, int rank) {
        return Connect(plan, {.rank = rank, .device = device, .store = store});
      },
      pacer);
  const absl::Status status = loop.Run();
  CHECK(absl::IsCancelled(status)) << status.ToString();
  if (timing != nullptr) Print(pacer.last_step());
  if (memory.has_value()) memory->Print(plan);
  if (process.options.traffic && process.rank == 0) Print(pacer.last_record());
  if (!items) return;
  on_device.Print();
  on_host.Print();
}

}  // namespace

BenchRanks::BenchRanks(const Plan& plan, const BenchRanksOptions& options) {
  for (int rank = 0; rank < MeshSize(plan.mesh()); ++rank) {
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
  Await(1);
}

BenchRanks::~BenchRanks() {
  // Processes that were forked later have this end of the pipe, too.
  for (const Pipes& pipes : pipes_) WriteByte(pipes.go, kEnd);
  for (const Pipes& pipes : pipes_) close(pipes.go);
  for (const pid_t process : processes_) waitpid(process, nullptr, 0);
  for (const Pipes& pipes : pipes_) close(pipes.done);
}

void BenchRanks::Step() {
  Ask(1);
  Await(1);
}

double BenchRanks::SecondsOf(const Span& span) {
  Ask(span.warm_up + span.count);
  Await(span.warm_up);
  const int64_t start = RealClock().MonotonicNanos();
  Await(span.count);
  return 1e-9 * (RealClock().MonotonicNanos() - start);
}

void BenchRanks::Ask(int steps) {
  for (const Pipes& pipes : pipes_) {
    for (int step = 0; step < steps; ++step) WriteByte(pipes.go, kGo);
  }
}

void BenchRanks::Await(int steps) {
  for (size_t rank = 0; rank < pipes_.size(); ++rank) {
    for (int step = 0; step < steps; ++step) {
      CHECK_EQ(ReadByte(pipes_[rank].done), kDone)
          << "rank " << rank << " failed";
    }
  }
}

}  // namespace troupe
