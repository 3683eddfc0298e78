// How fast a training step is: GPT-2 124M or a Llama of its size, real train
// loops over real communicators, one process a worker.
//
//   bazel run //tests/bench:step_bench -- --model gpt2 --threads 2
//   bazel run //tests/bench:step_bench -- --model llama --precision bf16
//       --workers 2 --threads 1
//   bazel run //tests/bench:step_bench -- --workers 2 --tensor 2
//       --sequence-parallel --threads 1
//   bazel run --config=cuda //tests/bench:step_bench -- --model gpt2-1.5b
//       --precision bf16 --device cuda:0 --batch 16
//
// A step is forward and backward of each micro-batch, the all-reduce of the
// gradients, their norm, clipping, and AdamW on all parameters. Prints each
// step, where the last one went (of one worker), and the rate of the best one
// beside what oneDNN's products reach on as many threads. On a GPU a step
// begins before the one before has ended: there all are timed together, after
// three, and it prints what was taken of the GPU's memory instead of where time
// went, and cuBLASLt's products. Model FLOPs of a token are 6 N + 12 L C T
// (proto/plan/model.h); recomputation counts nothing. The last line says how
// the machine was meanwhile. Ends with 1 where the job does not fit.
//
// --paced is for versus_pytorch.py, on CPUs: each line of stdin asks for a
// step, "done" answers.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "tests/bench/bench_device.h"
#include "tests/bench/bench_job.h"
#include "tests/bench/bench_ranks.h"
#include "tests/bench/machine_span.h"
#include "tests/bench/product_rate.h"

namespace troupe {
namespace {

struct Options {
  BenchJobOptions job;
  int steps = 4;
  bool paced = false;
};

void RunPaced(BenchRanks& ranks) {
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    ranks.Step();
    std::cout << "done" << std::endl;
  }
}

// Seconds of the best step; the first one warms up.
double BestStep(int steps, BenchRanks& ranks, MachineSpan& machine) {
  double best = std::numeric_limits<double>::infinity();
  ranks.Step();
  for (int step = 1; step <= steps; ++step) {
    const int64_t start = RealClock().MonotonicNanos();
    ranks.Step();
    const double seconds = 1e-9 * (RealClock().MonotonicNanos() - start);
    machine.Probe();
    std::printf("step %d: %.3f s\n", step, seconds);
    best = std::min(best, seconds);
  }
  return best;
}

// Of a GPU's.
double MeanStep(int steps, BenchRanks& ranks, MachineSpan& machine) {
  const double seconds = ranks.SecondsOf({.count = steps}) / steps;
  machine.Probe();
  std::printf("%d steps: %.3f s each\n", steps, seconds);
  return seconds;
}

void Report(const Options& options, const Plan& plan, double seconds) {
  const BenchJobOptions& job = options.job;
  const bool gpu = job.device != "cpu";
  const double count = static_cast<double>(TokensPerStep(job));
  const double flops = plan.derived().model_flops_per_token() * count;
  const MeasuredRate product =
      gpu ? MeasuredRate{GpuProductRate(
                             job.precision,
                             *OpenBenchDevice({.device = job.device}).device),
                         job.precision}
          : ProductRate(job.precision, job.threads * job.workers);
  const double rate = product.flops_per_second;
  const char* const whose = gpu ? "cuBLASLt" : "oneDNN";
  std::printf(
      "%s in %s: %ld parameters, %.4g model FLOPs a token\n"
      "step of %.0f tokens: %.3f s, %.1f tokens/s, %.1f model GFLOP/s\n"
      "%s %s product %s: %.1f GFLOP/s\n"
      "model FLOP/s over %s's product rate: %.3f\n",
      job.model.c_str(), job.precision.c_str(),
      static_cast<long>(plan.derived().parameters()),
      plan.derived().model_flops_per_token(), count, seconds, count / seconds,
      1e-9 * flops / seconds, whose, product.precision.c_str(),
      gpu ? "8192^3" : "2048^3", 1e-9 * rate, whose, flops / seconds / rate);
}

int Run(const Options& options) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const BenchJobOptions& job = options.job;
  if (options.paced && job.device != "cpu") {
    std::fprintf(stderr, "--paced is for CPUs: a GPU's steps overlap\n");
    return 1;
  }
  const std::string tokens =
      absl::StrCat("/tmp/step_bench-", getpid(), ".tokens");
  const absl::StatusOr<Plan> plan = BenchPlan(job, tokens);
  if (!plan.ok()) {
    unlink(tokens.c_str());
    std::fprintf(stderr, "%s\n", plan.status().ToString().c_str());
    return 1;
  }
  double seconds = 0;
  MachineSpan machine(job.threads * job.workers);
  {
    BenchRanks ranks(*plan, {.device = job.device,
                             .threads = job.threads,
                             .breakdown = !options.paced && job.workers == 1});
    unlink(tokens.c_str());
    if (options.paced) {
      RunPaced(ranks);
      return 0;
    }
    seconds = (job.device == "cpu" ? BestStep : MeanStep)(options.steps, ranks,
                                                          machine);
  }
  // The ranks have ended by now, so that what they used is known.
  const std::string machine_line = machine.Line();
  Report(options, *plan, seconds);
  std::printf("%s\n", machine_line.c_str());
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  CLI::App app("Times training steps on this machine.");
  troupe::Options options;
  app.add_option("--model", options.job.model)
      ->check(CLI::IsMember(troupe::BenchModels()));
  app.add_option("--precision", options.job.precision)
      ->check(CLI::IsMember({"f32", "bf16", "fp16"}));
  app.add_option("--device", options.job.device, "cpu or cuda:N");
  app.add_option("--workers", options.job.workers, "one process each");
  app.add_option("--tensor", options.job.tensor,
                 "of the workers, those that units are cut over");
  app.add_option("--context", options.job.context,
                 "of the workers, those that sequences are cut over");
  app.add_option("--context-method", options.job.context_method,
                 "ulysses or ring");
  app.add_flag("--sequence-parallel", options.job.sequence_parallel);
  app.add_option("--zero", options.job.zero,
                 "of the replicas, what rests in slices: 0 to 3")
      ->check(CLI::Range(0, 3));
  app.add_option("--expert", options.job.expert,
                 "of the replicas, those that share experts");
  app.add_option("--threads", options.job.threads, "of each worker");
  app.add_option("--batch", options.job.batch, "sequences of a micro-batch");
  app.add_option("--micro-batches", options.job.micro_batches,
                 "of a replica in a step");
  app.add_option("--seq", options.job.sequence_length, "tokens of a sequence");
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  app.add_flag("--paced", options.paced, "a step for each line of stdin");
  CLI11_PARSE(app, argc, argv);
  return troupe::Run(options);
}
