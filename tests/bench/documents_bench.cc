// What isolated documents save: GPT-2 124M or a Llama of its size on one
// worker, on files of documents of several lengths, with data.isolate_documents
// and without. Steps are taken in turns, so that a slow moment of the machine
// is everybody's; the best of each counts.
//
//   bazel run //tests/bench:documents_bench -- --model llama --seq 4096
//   bazel run //tests/bench:documents_bench -- --context 2 --workers 2
//       --threads 1 --seq 4096
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "tests/bench/bench_job.h"
#include "tests/bench/bench_ranks.h"
#include "tests/bench/machine_span.h"

namespace troupe {
namespace {

struct Case {
  std::string name;
  Plan plan;
  std::string tokens;
  double seconds = std::numeric_limits<double>::infinity();
};

void Print(const BenchJobOptions& job, const std::vector<Case>& cases) {
  std::printf(
      "\n| documents | step | tokens/s | over not isolated |\n"
      "|---|---|---|---|\n");
  for (const Case& of : cases) {
    std::printf("| %s | %.3f s | %.1f | %.3f |\n", of.name.c_str(), of.seconds,
                static_cast<double>(TokensPerStep(job)) / of.seconds,
                cases[0].seconds / of.seconds);
  }
  std::printf("\n");
}

int Run(BenchJobOptions job, const std::vector<int>& lengths, int steps) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::vector<WorkerDescription> workers = BenchWorkers(job);
  std::vector<Case> cases;
  const auto remove_files = [&cases] {
    for (const Case& of : cases) unlink(of.tokens.c_str());
  };
  for (int i = -1; i < static_cast<int>(lengths.size()); ++i) {
    job.isolate_documents = i >= 0;
    job.document_tokens = i < 0 ? 0 : lengths[i];
    cases.push_back(
        {.name = i < 0 ? "not isolated" : absl::StrCat(lengths[i], " tokens"),
         .plan = {},
         .tokens = absl::StrCat("/tmp/documents_bench-", getpid(), "-", i + 1,
                                ".tokens")});
    const absl::StatusOr<Plan> plan =
        BenchPlan(job, cases.back().tokens, workers);
    if (!plan.ok()) {
      remove_files();
      std::fprintf(stderr, "%s\n", plan.status().ToString().c_str());
      return 1;
    }
    cases.back().plan = *plan;
  }
  MachineSpan machine(job.threads * job.workers);
  {
    std::deque<BenchRanks> ranks;
    for (const Case& of : cases) {
      ranks.emplace_back(of.plan, BenchRanksOptions{.threads = job.threads});
      ranks.back().Step();  // warms up
    }
    remove_files();
    for (int step = 0; step < steps; ++step) {
      for (size_t c = 0; c < cases.size(); ++c) {
        const int64_t start = RealClock().MonotonicNanos();
        ranks[c].Step();
        cases[c].seconds = std::min(
            cases[c].seconds, 1e-9 * (RealClock().MonotonicNanos() - start));
      }
      machine.Probe();
    }
    Print(job, cases);
  }
  std::printf("%s\n", machine.Line().c_str());
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  CLI::App app("Times training steps that isolate documents.");
  troupe::BenchJobOptions job = {.model = "llama", .sequence_length = 2048};
  std::vector<int> lengths = {64, 256, 1024};
  int steps = 4;
  app.add_option("--model", job.model)
      ->check(CLI::IsMember(troupe::BenchModels()));
  app.add_option("--precision", job.precision)
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--workers", job.workers, "one process each");
  app.add_option("--context", job.context,
                 "of the workers, those that sequences are cut over");
  app.add_option("--context-method", job.context_method, "ulysses or ring");
  app.add_option("--threads", job.threads, "of each worker");
  app.add_option("--batch", job.batch, "sequences of a micro-batch");
  app.add_option("--seq", job.sequence_length, "tokens of a sequence");
  app.add_option("--lengths", lengths, "tokens of a document");
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return troupe::Run(job, lengths, steps);
}
