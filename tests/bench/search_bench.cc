// What `parallelism: auto` costs: processor time and memory of the search and
// of planning what it chose, for jobs of 8 to 12,288 ranks on DGX H100 as
// clients/examples/h100.yaml describes them. Each row is a process of its own.
// And how good the choice is: over small spaces drawn by seed, its step over
// that of the best of everything that the space has.
//
//   bazel run //tests/bench:search_bench                 # all rows
//   bazel run //tests/bench:search_bench -- "1,024"      # those of that name
//   bazel run //tests/bench:search_bench -- "1,024" --ways  # all simulated
//   bazel run //tests/bench:search_bench -- --spaces 200
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cluster_file/cluster_file.h"
#include "clients/cluster_file/cluster_workers.h"
#include "proto/base/check.h"
#include "proto/job.pb.h"
#include "scheduler/search/plan_job.h"
#include "tests/scheduler/search/drawn_space.h"

namespace troupe {
namespace {

struct Model {
  const char* name;
  int blocks = 0;
  int hidden = 0;
  int heads = 0;
  int intermediate = 0;
};
constexpr Model k8B = {"Llama 8B", 32, 4096, 32, 14336};
constexpr Model k70B = {"Llama 70B", 80, 8192, 64, 28672};
// As in arXiv 2104.04473, table 1.
constexpr Model k1T = {"1T", 128, 25600, 160, 102400};

struct Row {
  Model model;
  int ranks = 0;
  int batch = 0;
  int length = 0;
  std::string name() const {
    return absl::StrCat(model.name, " on ",
                        ranks >= 1000 ? absl::StrCat(ranks / 1000, ",") : "",
                        ranks % 1000 < 100 && ranks >= 1000 ? "0" : "",
                        ranks % 1000, " ranks, batch ", batch, " of ", length);
  }
};

const std::vector<Row>& Rows() {
  static const auto* const kRows = new std::vector<Row>{
      {k8B, 8, 128, 4096},      {k70B, 64, 512, 4096},
      {k70B, 1024, 2048, 4096}, {k1T, 3072, 3072, 2048},
      {k1T, 12288, 6144, 2048},
  };
  return *kRows;
}

JobSpec JobOf(const Row& row) {
  JobSpec job;
  job.set_name("search");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("llama");
  model.set_num_hidden_layers(row.model.blocks);
  model.set_hidden_size(row.model.hidden);
  model.set_num_attention_heads(row.model.heads);
  model.set_num_key_value_heads(8);
  model.set_intermediate_size(row.model.intermediate);
  model.set_vocab_size(128256);
  model.set_max_position_embeddings(row.length);
  job.mutable_data()->set_tokens("text.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1000);
  training.set_global_batch_size(row.batch);
  training.set_precision("bf16");
  job.mutable_optimizer()->set_lr(1e-4);
  job.mutable_parallelism()->set_mode("auto");
  job.mutable_memory()->set_mode("auto");
  return job;
}

std::string ClusterOf(int ranks) {
  return absl::StrCat(
      "nodes: [{count: ", ranks / 8, ", workers: 8, device: h100}]\n",
      "devices:\n  h100:\n    matmul:\n"
      "      - {dtype: bf16, m: 2048, n: 2048, k: 13312, tflops: 794.5}\n"
      "      - {dtype: bf16, m: 2048, n: 2048, k: 2048, tflops: 752}\n"
      "      - {dtype: bf16, m: 1024, n: 1024, k: 512, tflops: 501}\n"
      "    memory:\n"
      "      device: {size_gib: 80, bandwidth_gb_s: 3015}\n"
      "      host: {size_gib: 232, bandwidth_gb_s: 55.4}\n"
      "links:\n  intra_node: {latency_us: 10, bandwidth_gb_s: 360}\n"
      "  inter_node: {latency_us: 20, bandwidth_gb_s: 45}\n");
}

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

double ProcessorSeconds() {
  rusage usage;
  CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime);
}

void PrintWays(const Explanation& explanation) {
  for (const ExplainedWay& way : explanation.ways()) {
    std::printf("    %.3f s, estimated %.3f%s: %s\n", way.step_seconds(),
                way.estimated_seconds(), way.fits() ? "" : ", does not fit",
                way.fields().ShortDebugString().c_str());
  }
}

void Run(const Row& row, bool verbose) {
  const absl::StatusOr<ClusterSpec> cluster =
      ParseClusterSpec({.name = "cluster.yaml", .text = ClusterOf(row.ranks)});
  CHECK_OK(cluster.status());
  const auto workers =
      ClusterWorkers(*cluster, {.count = row.ranks, .precision = "bf16"});
  CHECK_OK(workers.status());
  const double began = ProcessorSeconds();
  double first_line = -1;
  double searched = 0;  // until the last line of the search
  const absl::StatusOr<PlannedJob> planned =
      PlanJob(JobOf(row), *workers, {}, [&](const std::string&) {
        searched = ProcessorSeconds() - began;
        if (first_line < 0) first_line = searched;
      });
  const double all = ProcessorSeconds() - began;
  std::printf(
      "%s: %.1f s of processor (first line after %.2f, last simulation after "
      "%.1f)",
      row.name().c_str(), all, first_line, searched);
  rusage usage;
  CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  std::printf(", %.0f MB\n", static_cast<double>(usage.ru_maxrss) * 1e-3);
  if (!planned.ok()) {
    std::printf("  %s\n", std::string(planned.status().message()).c_str());
    return;
  }
  const SearchSummary& search = planned->explanation.search();
  std::printf(
      "  %ld divisions, %ld estimated, %ld simulated, %ld not, error %.0f %%\n",
      search.candidates(), search.estimated(), search.simulated(),
      search.not_simulated(), 100 * search.error_max());
  if (verbose) PrintWays(planned->explanation);
  std::printf("  %.3f s, %s\n",
              planned->planned.plan.prediction().step_seconds(),
              planned->explanation.ways(0).fields().ShortDebugString().c_str());
}

void RunAll(const std::string& wanted, bool verbose) {
  for (const Row& row : Rows()) {
    if (!absl::StrContains(row.name(), wanted)) continue;
    std::fflush(stdout);
    const pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
      Run(row, verbose);
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
  }
}

void CompareSpaces(int count) {
  double worst = 1;
  double too_small = 0;
  double too_large = 0;
  int64_t broken = 0;
  int64_t least_broken = 0;
  double least_too_long = 0;
  int64_t plans = 0;
  int64_t simulated = 0;
  int beyond = 0;
  for (int seed = 1; seed <= count; ++seed) {
    const DrawnSpace space = DrawSpace(seed, /*workers_max=*/8);
    const Everything everything = SimulateEverything(space);
    const Chosen chosen = ChooseIn(space);
    plans += everything.plans;
    too_small = std::max(too_small, everything.too_small);
    too_large = std::max(too_large, everything.too_large);
    broken += everything.bounds_broken;
    least_broken += everything.least_broken;
    least_too_long = std::max(least_too_long, everything.least_too_long);
    simulated += chosen.simulated;
    if (everything.bounds_broken > 0) {
      std::printf("%s: %ld bounds of memory broken, as %s\n",
                  space.name.c_str(), everything.bounds_broken,
                  everything.broken.c_str());
    }
    if (!chosen.best.has_value() || !everything.best.has_value()) {
      const bool differ =
          chosen.best.has_value() != everything.best.has_value();
      std::printf("%s: nothing fits%s\n", space.name.c_str(),
                  differ ? " for one of both" : "");
      continue;
    }
    const double ratio = chosen.best->seconds / everything.best->seconds;
    worst = std::max(worst, ratio);
    if (ratio > 1.02) ++beyond;
    std::printf("%s: %.4f, %ld of %ld simulated, error %.0f %%%s\n",
                space.name.c_str(), ratio, chosen.simulated, everything.plans,
                100 * chosen.error,
                ratio <= 1.0001 ? ""
                                : absl::StrCat(" [", chosen.best->way, "] [",
                                               everything.best->way, "]")
                                      .c_str());
    std::fflush(stdout);
  }
  std::printf(
      "estimates up to %.0f %% too small and %.0f %% too large, %ld of %ld "
      "bounds of memory broken, %ld of time by up to %.1f %%\n",
      100 * too_small, 100 * too_large, broken, plans, least_broken,
      100 * least_too_long);
  std::printf(
      "%d spaces: worst ratio %.4f, %d beyond 1.02; %ld of %ld plans "
      "simulated; %.0f s of processor\n",
      count, worst, beyond, simulated, plans, ProcessorSeconds());
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  int count = 0;
  if (first == "--spaces" && argc > 2 && absl::SimpleAtoi(argv[2], &count)) {
    troupe::CompareSpaces(count);
    return 0;
  }
  const bool verbose = argc > 2 && std::string(argv[2]) == "--ways";
  troupe::RunAll(first, verbose);
  return 0;
}
