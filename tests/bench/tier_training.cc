#include "tests/bench/tier_training.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/plan/find_program.h"
#include "proto/plan/tier_traffic.h"
#include "storage/engine/make_engine.h"
#include "storage/spill/spill_preflight.h"
#include "tests/bench/bench_ranks.h"
#include "tests/bench/machine_span.h"

namespace troupe {
namespace {

struct Row {
  const char* name;
  void (*rest)(MemorySpec& memory);
};
constexpr Row kRows[] = {
    {"optimizer: host", [](MemorySpec& m) { m.set_optimizer("host"); }},
    {"optimizer: nvme", [](MemorySpec& m) { m.set_optimizer("nvme"); }},
    {"parameters: host", [](MemorySpec& m) { m.set_parameters("host"); }},
    {"gradients: host", [](MemorySpec& m) { m.set_gradients("host"); }},
    {"activations: host", [](MemorySpec& m) { m.set_activations("host"); }},
    {"activations: nvme", [](MemorySpec& m) { m.set_activations("nvme"); }},
};

// One place where things rest, and its steps.
struct Contestant {
  std::string name;
  Plan plan;
  std::unique_ptr<BenchRanks> ranks;
  std::vector<double> seconds = {};  // by round
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double SecondsOfStep(BenchRanks& ranks) {
  const RealClock clock;
  const int64_t begin = clock.MonotonicNanos();
  ranks.Step();
  return static_cast<double>(clock.MonotonicNanos() - begin) * 1e-9;
}

// How fast the disk is, asked between rounds.
class Disk {
 public:
  explicit Disk(const std::string& dir)
      : dir_(dir), engine_(MakeIoEngine({.log = false}).value()) {}

  void Ask() {
    const auto rates = TrySpillDirectory(
        *engine_, clock_, {.directory = dir_, .bytes = uint64_t{256} << 20});
    CHECK_OK(rates.status());
    reads_.push_back(rates->read_bytes_per_second);
    writes_.push_back(rates->write_bytes_per_second);
  }

  double Reads() const { return Median(reads_); }
  double Writes() const { return Median(writes_); }

 private:
  const std::string dir_;
  const std::unique_ptr<IoEngine> engine_;
  const RealClock clock_;
  std::vector<double> reads_;
  std::vector<double> writes_;
};

// What the disk needs for a step's bytes, if nothing else holds it up: reads
// and writes by turns.
void PrintRoofline(const Contestant& contestant, double in_memory,
                   const Disk& disk) {
  const Program* const train =
      FindProgram(contestant.plan.roles(0), Program::TRAIN);
  for (const TierTraffic& tier :
       TrafficOf(*train, contestant.plan.lanes(), RankTimeline())) {
    if (tier.tier() != NVME) continue;
    const double needs =
        tier.bytes_in() / disk.Reads() + tier.bytes_out() / disk.Writes();
    std::printf(
        "  %s: the disk reads %.2f GB at %.2f GB/s and writes %.2f GB at %.2f "
        "GB/s in a step: %.2f s, of %.2f s in memory; at that limit %.2f\n",
        contestant.name.c_str(), tier.bytes_in() * 1e-9, disk.Reads() * 1e-9,
        tier.bytes_out() * 1e-9, disk.Writes() * 1e-9, needs, in_memory,
        std::min(1.0, in_memory / needs));
  }
}

void Print(const std::vector<Contestant>& contestants, const Disk& disk) {
  const std::vector<double>& first = contestants[0].seconds;
  std::printf(
      "\n| what rests where | step | tokens/s over all on the device | least, "
      "most |\n|---|---|---|---|\n");
  for (const Contestant& contestant : contestants) {
    std::vector<double> ratios;
    for (size_t round = 0; round < first.size(); ++round) {
      ratios.push_back(first[round] / contestant.seconds[round]);
    }
    std::printf("| %s | %.2f s | %.3f | %.3f, %.3f |\n",
                contestant.name.c_str(), Median(contestant.seconds),
                Median(ratios), *std::min_element(ratios.begin(), ratios.end()),
                *std::max_element(ratios.begin(), ratios.end()));
  }
  std::printf("\n");
  for (const Contestant& contestant : contestants) {
    PrintRoofline(contestant, Median(first), disk);
  }
}

bool MakePlans(const TierTrainingOptions& options, const std::string& tokens,
               std::vector<Contestant>& contestants) {
  BenchJobOptions job = options.job;
  job.nvme = true;
  const std::vector<WorkerDescription> workers = BenchWorkers(job);
  std::vector<Row> rows = {{"all on the device", [](MemorySpec&) {}}};
  for (const Row& row : kRows) {
    if (absl::StrContains(row.name, options.rows)) rows.push_back(row);
  }
  for (const Row& row : rows) {
    job.memory = options.job.memory;
    row.rest(job.memory);
    absl::StatusOr<Plan> plan = BenchPlan(job, tokens, workers);
    if (!plan.ok()) {
      std::fprintf(stderr, "%s: %s\n", row.name,
                   plan.status().ToString().c_str());
      return false;
    }
    contestants.push_back({.name = row.name, .plan = *std::move(plan)});
  }
  return true;
}

}  // namespace

bool TimeTierTraining(const TierTrainingOptions& options) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string tokens =
      absl::StrCat("/tmp/tier_bench-", getpid(), ".tokens");
  std::vector<Contestant> contestants;
  const bool planned = MakePlans(options, tokens, contestants);
  MachineSpan machine(options.job.threads);
  // Processes of their own, before this one starts a thread.
  for (Contestant& contestant : contestants) {
    if (!planned) break;
    contestant.ranks = std::make_unique<BenchRanks>(
        contestant.plan, BenchRanksOptions{.threads = options.job.threads,
                                           .nvme = options.dir,
                                           .traffic = true});
    contestant.ranks->Step();  // warms up
  }
  unlink(tokens.c_str());
  if (!planned) return false;
  Disk disk(options.dir);
  for (int round = 0; round < options.rounds; ++round) {
    disk.Ask();
    for (size_t i = 0; i < contestants.size(); ++i) {
      Contestant& next = contestants[(round + i) % contestants.size()];
      next.seconds.push_back(SecondsOfStep(*next.ranks));
    }
    machine.Probe();
  }
  Print(contestants, disk);
  for (Contestant& contestant : contestants) {
    std::printf("%s\n", contestant.name.c_str());
    contestant.ranks.reset();  // says what its last step moved
  }
  std::printf("%s\n", machine.Line().c_str());
  return true;
}

}  // namespace troupe
