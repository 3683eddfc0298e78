// What recomputation saves and costs: GPT-2 124M or a Llama of its size on one
// worker, as memory.recompute says, mode by mode. Of each it prints what the
// plan's activations take, and a step's time over that of the mode that keeps
// all, predicted and measured. Steps are taken in turns, so that a slow moment
// of the machine is everybody's; the best of each counts.
//
//   bazel run //tests/bench:recompute_bench -- --model gpt2 --precision bf16
//   bazel run //tests/bench:recompute_bench -- --model llama --batch 2
//       --seq 512
//
// Below the table, what of each mode's memory is resident, by line item.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "tests/bench/bench_job.h"
#include "tests/bench/bench_ranks.h"
#include "tests/bench/machine_span.h"

namespace troupe {
namespace {

constexpr double kMiB = 1 << 20;

struct Mode {
  std::string name;
  Plan plan;
  double seconds = std::numeric_limits<double>::infinity();
};

double PlannedBytes(const Plan& plan, const std::string& wanted) {
  double bytes = 0;
  for (const MemoryItem& item : plan.prediction().ranks(0).memory()) {
    if (wanted.empty() || item.item() == wanted) {
      bytes += static_cast<double>(item.bytes());
    }
  }
  return bytes;
}

void Print(const std::vector<Mode>& modes) {
  std::printf(
      "\n| recompute | activations, MiB | all, MiB | step | measured over "
      "none | predicted over none |\n|---|---|---|---|---|---|\n");
  for (const Mode& mode : modes) {
    std::printf("| `%s` | %.1f | %.1f | %.3f s | %.3f | %.3f |\n",
                mode.name.c_str(),
                PlannedBytes(mode.plan, "activations") / kMiB,
                PlannedBytes(mode.plan, "") / kMiB, mode.seconds,
                mode.seconds / modes[0].seconds,
                mode.plan.prediction().step_seconds() /
                    modes[0].plan.prediction().step_seconds());
  }
  std::printf("\n");
}

int Run(BenchJobOptions job, int steps) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string tokens =
      absl::StrCat("/tmp/recompute_bench-", getpid(), ".tokens");
  const std::vector<WorkerDescription> workers = BenchWorkers(job);
  std::vector<Mode> modes;
  for (const char* const name : {"none", "selective", "full"}) {
    job.memory.mutable_recompute()->set_mode(name);
    const absl::StatusOr<Plan> plan = BenchPlan(job, tokens, workers);
    if (!plan.ok()) {
      unlink(tokens.c_str());
      std::fprintf(stderr, "%s\n", plan.status().ToString().c_str());
      return 1;
    }
    modes.push_back({.name = name, .plan = *plan});
  }
  MachineSpan machine(job.threads);
  {
    std::deque<BenchRanks> ranks;
    for (const Mode& mode : modes) {
      ranks.emplace_back(
          mode.plan, BenchRanksOptions{.threads = job.threads, .memory_of = 0});
      ranks.back().Step();  // warms up
    }
    unlink(tokens.c_str());
    for (int step = 0; step < steps; ++step) {
      for (size_t m = 0; m < modes.size(); ++m) {
        const int64_t start = RealClock().MonotonicNanos();
        ranks[m].Step();
        modes[m].seconds = std::min(
            modes[m].seconds, 1e-9 * (RealClock().MonotonicNanos() - start));
      }
      machine.Probe();
    }
    Print(modes);
  }
  std::printf("%s\n", machine.Line().c_str());
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  CLI::App app("Times training steps that make values again.");
  troupe::BenchJobOptions job = {.micro_batches = 2, .sequence_length = 512};
  int steps = 4;
  app.add_option("--model", job.model)
      ->check(CLI::IsMember(troupe::BenchModels()));
  app.add_option("--precision", job.precision)
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--threads", job.threads);
  app.add_option("--batch", job.batch, "sequences of a micro-batch");
  app.add_option("--micro-batches", job.micro_batches, "in a step");
  app.add_option("--seq", job.sequence_length, "tokens of a sequence");
  app.add_option("--steps", steps);
  CLI11_PARSE(app, argc, argv);
  return troupe::Run(job, steps);
}
