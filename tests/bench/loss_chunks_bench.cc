// What it saves and costs to compute the loss for some tokens at a time
// (memory.loss_chunk_tokens): GPT-2 124M with its vocabulary of 50,257, and a
// Llama of its size with Llama 3's of 128,256, on one worker. Of each size of a
// chunk it prints the planned peak and activations, what is resident of these,
// and a step's time over that of the whole loss, predicted and measured. Steps
// are taken in turns, so that a slow moment of the machine is everybody's; the
// best of each counts, and the median of the ratios of each turn beside it.
//
//   bazel run //tests/bench:loss_chunks_bench -- --precision bf16
//   bazel run //tests/bench:loss_chunks_bench -- --chunks 4096 --batch 16
//       --device cuda:0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
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
  int64_t chunk = 0;
  Plan plan;
  std::vector<double> seconds;  // of each turn
  double Best() const {
    return *std::min_element(seconds.begin(), seconds.end());
  }
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

// Of each turn's ratio: a turn's steps see the same machine.
double MedianRatio(const Mode& mode, const Mode& whole) {
  std::vector<double> ratios;
  for (size_t i = 0; i < mode.seconds.size(); ++i) {
    ratios.push_back(mode.seconds[i] / whole.seconds[i]);
  }
  std::nth_element(ratios.begin(), ratios.begin() + ratios.size() / 2,
                   ratios.end());
  return ratios[ratios.size() / 2];
}

void Print(const BenchJobOptions& job, const std::vector<Mode>& modes) {
  std::printf(
      "\n%s, vocabulary %d, %d tokens of a micro-batch, %s\n"
      "| loss_chunk_tokens | activations, MiB | all, MiB | step | best over "
      "whole | median over whole | predicted over whole |\n"
      "|---|---|---|---|---|---|---|\n",
      job.model.c_str(), modes[0].plan.job().model().vocab_size(),
      job.batch * job.sequence_length, job.precision.c_str());
  for (const Mode& mode : modes) {
    std::printf("| %s | %.1f | %.1f | %.3f s | %.3f | %.3f | %.3f |\n",
                mode.chunk == 0 ? "whole" : absl::StrCat(mode.chunk).c_str(),
                PlannedBytes(mode.plan, "activations") / kMiB,
                PlannedBytes(mode.plan, "") / kMiB, mode.Best(),
                mode.Best() / modes[0].Best(), MedianRatio(mode, modes[0]),
                mode.plan.prediction().step_seconds() /
                    modes[0].plan.prediction().step_seconds());
  }
  std::printf("\n");
}

// One model, with each size of a chunk.
bool RunModel(BenchJobOptions job, const std::vector<int64_t>& chunks,
              int steps) {
  const std::string tokens =
      absl::StrCat("/tmp/loss_chunks_bench-", getpid(), ".tokens");
  const std::vector<WorkerDescription> workers = BenchWorkers(job);
  std::vector<Mode> modes;
  for (const int64_t chunk : chunks) {
    job.memory.set_loss_chunk_tokens(chunk);
    const absl::StatusOr<Plan> plan = BenchPlan(job, tokens, workers);
    if (!plan.ok()) {
      unlink(tokens.c_str());
      std::fprintf(stderr, "%s\n", plan.status().ToString().c_str());
      return false;
    }
    modes.push_back({.chunk = chunk, .plan = *plan, .seconds = {}});
  }
  MachineSpan machine(job.threads);
  {
    std::deque<BenchRanks> ranks;
    for (const Mode& mode : modes) {
      const bool on_cpu = job.device == "cpu";
      ranks.emplace_back(mode.plan,
                         BenchRanksOptions{.device = job.device,
                                           .threads = job.threads,
                                           .memory_of = on_cpu ? 0 : -1});
      ranks.back().Step();  // warms up
    }
    unlink(tokens.c_str());
    for (int step = 0; step < steps; ++step) {
      for (size_t i = 0; i < modes.size(); ++i) {
        const size_t m = (i + step) % modes.size();
        const int64_t start = RealClock().MonotonicNanos();
        if (job.device == "cpu") {
          ranks[m].Step();
          modes[m].seconds.push_back(1e-9 *
                                     (RealClock().MonotonicNanos() - start));
        } else {
          modes[m].seconds.push_back(ranks[m].SecondsOf({.count = 5}));
        }
      }
      machine.Probe();
    }
    Print(job, modes);
  }
  std::printf("%s\n", machine.Line().c_str());
  return true;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  CLI::App app("Times training steps whose loss is computed in chunks.");
  troupe::BenchJobOptions job = {
      .batch = 4, .micro_batches = 1, .sequence_length = 512};
  std::vector<int64_t> chunks = {1024, 256};
  std::vector<std::string> models = {"gpt2", "llama"};
  int steps = 5;
  int llama_vocabulary = 128256;
  app.add_option("--models", models)->delimiter(',');
  app.add_option("--llama-vocabulary", llama_vocabulary);
  app.add_option("--precision", job.precision)
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--device", job.device);
  app.add_option("--threads", job.threads);
  app.add_option("--batch", job.batch, "sequences of a micro-batch");
  app.add_option("--micro-batches", job.micro_batches, "in a step");
  app.add_option("--seq", job.sequence_length, "tokens of a sequence");
  app.add_option("--chunks", chunks, "tokens of each")->delimiter(',');
  app.add_option("--steps", steps);
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  chunks.insert(chunks.begin(), 0);
  for (const std::string& model : models) {
    job.model = model;
    job.vocabulary = model == "gpt2" ? 0 : llama_vocabulary;
    if (!troupe::RunModel(job, chunks, steps)) return 1;
  }
  return 0;
}
