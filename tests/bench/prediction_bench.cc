// Do plans tell the truth? Trains models of several sizes, precisions, replica
// counts and pipelines for a few steps on real daemons of this machine, and
// prints for each what its plan had predicted over what was measured: the time
// of a step, and the resident memory of the worker that used most. The last
// column is how much slower than at its calibration the workers found their
// machine meanwhile: a ratio that is as large is the machine's.
//
//   bazel run //tests/bench:prediction_bench
//   bazel run //tests/bench:prediction_bench -- stages   # rows of that name
//   bazel run //tests/bench:prediction_bench -- tensor --items
//   bazel run //tests/bench:prediction_bench -- tiers --nvme /nvme
//
// --items: below each row the memory of the rank that needs most, by line item:
// what the plan gives it, and how much of that is resident after three steps.
// A worker's process does not tell these apart, so train loops of the same plan
// take the steps (bench_ranks.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/job_file/job_file.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "proto/base/philox.h"
#include "scheduler/planner/planner.h"
#include "tests/bench/bench_device.h"
#include "tests/bench/bench_ranks.h"
#include "tests/bench/daemon_cluster.h"
#include "worker/collective/shared_memory/memory_domain.h"

namespace troupe {
namespace {

using Settings = std::vector<std::string>;

struct Row {
  const char* name;
  int workers;
  Settings settings;  // what changes in the base job
};

Settings Join(const std::vector<Settings>& parts) {
  Settings all;
  for (const Settings& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Ranks that units are cut over.
Settings Tensor(int ranks) {
  return {absl::StrCat("parallelism.tensor=", ranks)};
}

// Eight ranks that share products in three dimensions.
Settings Cube() {
  return {"parallelism.tensor=8", "parallelism.tensor_method=3d",
          "model.num_attention_heads=8"};
}

// Squares of ranks that share products of blocks, panel by panel.
Settings Square() {
  return {"parallelism.tensor=4", "parallelism.tensor_method=2d",
          "model.num_attention_heads=8"};
}
Settings Layers() {
  return {"parallelism.tensor=8", "parallelism.tensor_method=2.5d",
          "model.num_attention_heads=8"};
}

// Ranks that sequences are cut over.
Settings Context(int ranks) {
  return {absl::StrCat("parallelism.context=", ranks)};
}

Settings Ring(int ranks) {
  return {absl::StrCat("parallelism.context=", ranks),
          "parallelism.context_method=ring"};
}

// What of the replicas rests in slices.
Settings Zero(int stage) {
  return {"parallelism.data=2", absl::StrCat("parallelism.zero=", stage)};
}

// Where what rests: optimizer, parameters, gradients, activations.
Settings Tiers(const std::string& optimizer,
               const std::string& parameters = "device",
               const std::string& gradients = "device",
               const std::string& activations = "device") {
  return {"memory.optimizer=" + optimizer, "memory.parameters=" + parameters,
          "memory.gradients=" + gradients, "memory.activations=" + activations};
}

// Micro-batches of one sequence.
Settings Stages(int stages, const char* schedule, int micro_batches = 8) {
  return {absl::StrCat("parallelism.pipeline=", stages),
          absl::StrCat("parallelism.pipeline_schedule=", schedule),
          "training.micro_batch_size=1",
          absl::StrCat("training.global_batch_size=", micro_batches)};
}

std::vector<Row> Rows() {
  const Settings wide = {"model.hidden_size=512", "model.num_hidden_layers=6"};
  const Settings llama = {"model.architecture=llama", "model.hidden_size=512",
                          "model.num_hidden_layers=6",
                          "model.num_key_value_heads=2",
                          "model.intermediate_size=1376"};
  const Settings large = {"model.hidden_size=768", "model.num_hidden_layers=12",
                          "model.num_attention_heads=12",
                          "training.micro_batch_size=1",
                          "training.global_batch_size=2"};
  const Settings bf16 = {"training.precision=bf16"};
  const Settings replicas = {"parallelism.data=2"};
  const Settings sequence = {"parallelism.sequence_parallel=true"};
  const Settings kept = {"parallelism.reshard_after_forward=false"};
  const Settings vocabulary = {"model.vocab_size=32000"};
  const Settings selective = {"memory.recompute=selective"};
  const Settings full = {"memory.recompute=full"};
  const Settings longer = {
      "training.sequence_length=1024", "model.max_position_embeddings=1024",
      "training.micro_batch_size=1", "training.global_batch_size=2"};
  const Settings unclipped = {"training.gradient_clipping=0"};
  return {
      {"gpt2 256x4", 1, {}},
      {"gpt2 256x4 bf16", 1, bf16},
      {"gpt2 512x6", 1, wide},
      {"gpt2 512x6 bf16", 1, Join({wide, bf16})},
      {"gpt2 768x12, 1 sequence", 1, large},
      {"gpt2 768x12 bf16", 1, Join({large, bf16})},
      {"gpt2 256x4, vocabulary 32000", 1, vocabulary},
      {"gpt2 256x4, 8 at once", 1, {"training.micro_batch_size=8"}},
      {"llama 512x6", 1, llama},
      {"llama 512x6 bf16", 1, Join({llama, bf16})},
      {"recompute selective, 512x6", 1, Join({wide, selective})},
      {"recompute full, 512x6", 1, Join({wide, full})},
      {"recompute selective, 512x6 bf16", 1, Join({wide, bf16, selective})},
      {"recompute full, 512x6 bf16", 1, Join({wide, bf16, full})},
      {"recompute full, llama 512x6 bf16", 1, Join({llama, bf16, full})},
      {"gpt2 256x4, 2 replicas", 2, replicas},
      {"gpt2 512x6, 2 replicas", 2, Join({wide, replicas})},
      {"gpt2 512x6 bf16, 2 replicas", 2, Join({wide, bf16, replicas})},
      {"llama 512x6 bf16, 2 replicas", 2, Join({llama, bf16, replicas})},
      {"2 stages, naive", 2, Stages(2, "naive")},
      {"2 stages, gpipe", 2, Stages(2, "gpipe")},
      {"2 stages, gpipe, recompute full", 2, Join({Stages(2, "gpipe"), full})},
      {"2 stages, 1f1b", 2, Stages(2, "1f1b")},
      {"2 stages, 1f1b, 512x6", 2, Join({wide, Stages(2, "1f1b")})},
      {"2 stages, 1f1b, 512x6, 2 at once", 2,
       Join(
           {wide, Stages(2, "1f1b"), Settings{"training.micro_batch_size=2"}})},
      {"2 stages, 1f1b, 512x6 bf16", 2, Join({wide, bf16, Stages(2, "1f1b")})},
      {"2 stages, 1f1b, llama 512x6", 2, Join({llama, Stages(2, "1f1b")})},
      {"2 stages, interleaved, 512x6", 2,
       Join({wide, Stages(2, "interleaved_1f1b")})},
      {"2 stages, chimera", 2, Stages(2, "chimera")},
      {"2 stages, zb_h1, 512x6", 2, Join({wide, Stages(2, "zb_h1")})},
      {"2 stages, zb_v, 512x6", 2, Join({wide, Stages(2, "zb_v")})},
      {"2 stages, pipedream", 2, Stages(2, "pipedream")},
      {"2 stages, vocabulary 32000", 2, Join({vocabulary, Stages(2, "1f1b")})},
      {"4 stages, gpipe", 4, Stages(4, "gpipe")},
      {"4 stages, 1f1b, 512x6", 4, Join({wide, Stages(4, "1f1b", 16)})},
      {"4 stages, pipedream_2bw", 4, Stages(4, "pipedream_2bw")},
      {"2 stages x 2 replicas, 1f1b", 4,
       Join({Stages(2, "1f1b", 16), replicas})},
      {"2 stages x 2 replicas, zb_h1, 512x6", 4,
       Join({wide, Stages(2, "zb_h1", 16), replicas})},
      {"tensor 2", 2, Tensor(2)},
      {"tensor 2, 512x6", 2, Join({wide, Tensor(2)})},
      {"tensor 2, sequence, 512x6", 2, Join({wide, Tensor(2), sequence})},
      {"tensor 2, 512x6 bf16", 2, Join({wide, bf16, Tensor(2)})},
      {"tensor 2, sequence, 512x6 bf16", 2,
       Join({wide, bf16, Tensor(2), sequence})},
      {"tensor 2, seq., recompute selective", 2,
       Join({wide, Tensor(2), sequence, selective})},
      {"tensor 2, llama 512x6", 2, Join({llama, Tensor(2)})},
      {"tensor 2, sequence, llama 512x6", 2,
       Join({llama, Tensor(2), sequence})},
      {"tensor 2, llama 512x6 bf16", 2, Join({llama, bf16, Tensor(2)})},
      {"tensor 2, sequence, llama bf16", 2,
       Join({llama, bf16, Tensor(2), sequence})},
      {"tensor 2, vocabulary 32000", 2, Join({vocabulary, Tensor(2)})},
      {"tensor 4, 512x6", 4, Join({wide, Tensor(4)})},
      {"tensor 4, sequence, llama bf16", 4,
       Join({llama, bf16, Tensor(4), sequence})},
      {"tensor 2 x 2 replicas, 512x6", 4, Join({wide, Tensor(2), replicas})},
      {"tensor 2 x 2 replicas, seq., llama", 4,
       Join({llama, Tensor(2), sequence, replicas})},
      {"tensor 2 x 2 stages, gpipe, bf16", 4,
       Join({bf16, Tensor(2), Stages(2, "gpipe")})},
      {"tensor 2 x 2 stages, 1f1b, 512x6", 4,
       Join({wide, Tensor(2), Stages(2, "1f1b")})},
      {"tensor 2 x 2 stages, seq., 1f1b", 4,
       Join({wide, Tensor(2), sequence, Stages(2, "1f1b")})},
      {"tensor 2 x 2 stages, seq., zb_h1", 4,
       Join({llama, bf16, Tensor(2), sequence, Stages(2, "zb_h1")})},
      {"tensor 2 x 2 stages, zb_v, llama", 4,
       Join({llama, Tensor(2), Stages(2, "zb_v")})},
      {"context 2", 2, Context(2)},
      {"context 2, 512x6", 2, Join({wide, Context(2)})},
      {"context 2, 512x6 bf16", 2, Join({wide, bf16, Context(2)})},
      {"context 2, 512x6, 1,024 tokens", 2, Join({wide, longer, Context(2)})},
      {"context 2, llama 512x6", 2, Join({llama, Context(2)})},
      {"context 2, llama 512x6 bf16", 2, Join({llama, bf16, Context(2)})},
      {"context 2, llama, 1,024 tokens", 2, Join({llama, longer, Context(2)})},
      {"context 2, zero 3, 512x6", 2,
       Join({wide, Context(2), Settings{"parallelism.zero=3"}})},
      {"context 2, recompute full, 512x6", 2, Join({wide, full, Context(2)})},
      {"context 4, 512x6, 1,024 tokens", 4, Join({wide, longer, Context(4)})},
      {"context 2 x 2 replicas, 512x6", 4, Join({wide, Context(2), replicas})},
      {"context 2 x tensor 2, seq., llama", 4,
       Join({llama, Context(2), Tensor(2), sequence})},
      {"context 2 x 2 stages, 1f1b, 512x6", 4,
       Join({wide, Context(2), Stages(2, "1f1b")})},
      {"2d 4", 4, Square()},
      {"2d 4, 512x6", 4, Join({wide, Square()})},
      {"2d 4, 512x6 bf16", 4, Join({wide, bf16, Square()})},
      {"2d 4, llama 512x6", 4, Join({llama, Square()})},
      {"2d 4, recompute full, 512x6", 4, Join({wide, full, Square()})},
      {"2d 4, zero 3 over 2, 512x6", 8,
       Join({wide, Square(), replicas, Settings{"parallelism.zero=3"}})},
      {"2.5d 8, 512x6", 8, Join({wide, Layers()})},
      {"2.5d 8, llama 512x6", 8, Join({llama, Layers()})},
      {"3d 8", 8, Cube()},
      {"3d 8, 512x6", 8, Join({wide, Cube()})},
      {"3d 8, 512x6 bf16", 8, Join({wide, bf16, Cube()})},
      {"3d 8, llama 512x6", 8, Join({llama, Cube()})},
      {"3d 8, recompute full, 512x6", 8, Join({wide, full, Cube()})},
      {"ring 2", 2, Ring(2)},
      {"ring 2, 512x6", 2, Join({wide, Ring(2)})},
      {"ring 2, 512x6 bf16", 2, Join({wide, bf16, Ring(2)})},
      {"ring 2, 512x6, 1,024 tokens", 2, Join({wide, longer, Ring(2)})},
      {"ring 2, llama 512x6", 2, Join({llama, Ring(2)})},
      {"ring 2, llama, 1,024 tokens", 2, Join({llama, longer, Ring(2)})},
      {"ring 2, zero 3, 512x6", 2,
       Join({wide, Ring(2), Settings{"parallelism.zero=3"}})},
      {"ring 2, recompute full, 512x6", 2, Join({wide, full, Ring(2)})},
      {"ring 4, 512x6, 1,024 tokens", 4, Join({wide, longer, Ring(4)})},
      {"ring 2 x 2 replicas, 512x6", 4, Join({wide, Ring(2), replicas})},
      {"ring 2 x tensor 2, seq., llama", 4,
       Join({llama, Ring(2), Tensor(2), sequence})},
      {"ring 2 x 2 stages, 1f1b, 512x6", 4,
       Join({wide, Ring(2), Stages(2, "1f1b")})},
      {"usp 4 by 2, 512x6, 1,024 tokens", 4,
       Join({wide, longer,
             Settings{"parallelism.context=4", "parallelism.context_method=usp",
                      "parallelism.ulysses_size=2"}})},
      {"zero 1", 2, Zero(1)},
      {"zero 2", 2, Zero(2)},
      {"zero 3", 2, Zero(3)},
      {"zero 1, 512x6", 2, Join({wide, Zero(1)})},
      {"zero 2, 512x6", 2, Join({wide, Zero(2)})},
      {"zero 3, 512x6", 2, Join({wide, Zero(3)})},
      {"zero 3, kept, 512x6", 2, Join({wide, Zero(3), kept})},
      {"zero 1, 512x6 bf16", 2, Join({wide, bf16, Zero(1)})},
      {"zero 3, 512x6 bf16", 2, Join({wide, bf16, Zero(3)})},
      {"zero 1, llama 512x6", 2, Join({llama, Zero(1)})},
      {"zero 3, llama 512x6", 2, Join({llama, Zero(3)})},
      {"zero 3, llama 512x6 bf16", 2, Join({llama, bf16, Zero(3)})},
      {"zero 2, vocabulary 32000", 2, Join({vocabulary, Zero(2)})},
      {"zero 3, 768x12 bf16", 2, Join({large, bf16, Zero(3)})},
      {"zero 3 x tensor 2, 512x6", 4, Join({wide, Tensor(2), Zero(3)})},
      {"zero 1 x 2 stages, 1f1b, 512x6", 4,
       Join({wide, Stages(2, "1f1b", 16), Zero(1)})},
      {"zero 3 x 2 stages, 1f1b, 512x6", 4,
       Join({wide, Stages(2, "1f1b", 16), Zero(3), kept})},
      {"zero 3 by 2, 4 replicas, 512x6", 4,
       Join({wide, Zero(3),
             Settings{"parallelism.data=4", "parallelism.zero_size=2",
                      "training.micro_batch_size=2"}})},
      {"tiers: optimizer host", 1, Join({wide, Tiers("host")})},
      {"tiers: optimizer host, bf16", 1, Join({wide, bf16, Tiers("host")})},
      {"tiers: optimizer host, unclipped", 1,
       Join({wide, unclipped, Tiers("host")})},
      {"tiers: optimizer nvme", 1, Join({wide, Tiers("nvme")})},
      {"tiers: optimizer nvme, bf16", 1, Join({wide, bf16, Tiers("nvme")})},
      {"tiers: optimizer nvme, unclipped", 1,
       Join({wide, unclipped, Tiers("nvme")})},
      {"tiers: optimizer nvme, 8 of 1", 1,
       Join({wide, Settings{"training.micro_batch_size=1"}, Tiers("nvme")})},
      {"tiers: optimizer nvme, 768x12 bf16", 1,
       Join({large, bf16, Tiers("nvme")})},
      {"tiers: optimizer nvme, llama", 1, Join({llama, Tiers("nvme")})},
      {"tiers: parameters host", 1, Join({wide, Tiers("device", "host")})},
      {"tiers: parameters nvme, bf16", 1,
       Join({wide, bf16, Tiers("device", "nvme")})},
      {"tiers: gradients host", 1,
       Join({wide, Tiers("device", "device", "host")})},
      {"tiers: activations host", 1,
       Join({wide, Tiers("device", "device", "device", "host")})},
      {"tiers: activations nvme", 1,
       Join({wide, Tiers("device", "device", "device", "nvme")})},
      {"tiers: all host", 1,
       Join({wide, Tiers("host", "host", "host", "host")})},
      {"tiers: all nvme, bf16", 1,
       Join({wide, bf16, Tiers("nvme", "nvme", "host", "nvme")})},
      {"tiers: all nvme, recompute full", 1,
       Join({wide, full, Tiers("nvme", "nvme", "host", "nvme")})},
      {"tiers: optimizer host, zero 1", 2,
       Join({wide, Zero(1), Tiers("host")})},
      {"tiers: optimizer nvme, zero 3 bf16", 2,
       Join({wide, bf16, Zero(3), Tiers("nvme")})},
      {"tiers: all nvme, zero 3", 2,
       Join({wide, Zero(3), Tiers("nvme", "nvme", "host", "nvme")})},
      {"tiers: optimizer nvme, tensor 2", 2,
       Join({wide, Tensor(2), Tiers("nvme")})},
      {"tiers: all host, tensor 2, llama bf16", 2,
       Join({llama, bf16, Tensor(2), Tiers("host", "host", "host", "host")})},
      {"tiers: optimizer nvme, 2 stages, 1f1b", 2,
       Join({wide, Stages(2, "1f1b"), Tiers("nvme")})},
  };
}

constexpr char kJob[] = R"(name: prediction
model:
  architecture: gpt2
  num_hidden_layers: 4
  hidden_size: 256
  num_attention_heads: 4
  vocab_size: 256
  max_position_embeddings: 256
data: {tokens: text.tokens}
training: {steps: 12, global_batch_size: 8, micro_batch_size: 4}
optimizer: {lr: 1.0e-4}
)";
constexpr int kStepsSkipped = 3;

// The folder with the job and its tokens, 1 MiB of noise.
std::string Prepare() {
  const std::string folder =
      std::filesystem::temp_directory_path() / "troupe-prediction-bench";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/job.yaml") << kJob;
  std::string text(1 << 20, ' ');
  const PhiloxStream stream = {.seed = 1};
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(PhiloxUint32(stream, i));
  }
  std::ofstream(folder + "/text", std::ios::binary) << text;
  RunTroupe(
      {"data", "prepare", folder + "/text", "--out", folder + "/text.tokens"});
  return folder;
}

// What was measured over its prediction, by row.
struct Ratios {
  std::vector<double> step;
  std::vector<double> memory;
  double slower_max = 0;  // of the machine
};

// Of the rank that needs most, if the workers have one thread each.
void PrintItems(const Row& row, const std::string& folder,
                const std::string& nvme) {
  const auto job =
      LoadJobFile({.path = folder + "/job.yaml", .overrides = row.settings});
  CHECK_OK(job.status());
  std::vector<WorkerDescription> workers(row.workers, DescribeBenchDevice({}));
  for (int i = 0; i < row.workers; ++i) {
    workers[i].set_name(absl::StrCat("worker-", i));
    workers[i].set_memory_domain(MemoryDomain());
    TierBudget& budget = *workers[i].add_budgets();
    budget.set_tier(NVME);
    budget.set_bytes(int64_t{1} << 40);
  }
  const auto plan = CompilePlan(job->spec, workers);
  CHECK_OK(plan.status());
  const auto& ranks = plan->prediction().ranks();
  const auto largest =
      std::max_element(ranks.begin(), ranks.end(),
                       [](const RankPrediction& a, const RankPrediction& b) {
                         return a.peak_bytes() < b.peak_bytes();
                       });
  BenchRanks running(*plan, {.memory_of = largest->rank(), .nvme = nvme});
  for (int step = 0; step < 3; ++step) running.Step();
}

void RunRow(const Row& row, const DaemonCluster& cluster,
            const std::string& folder, Ratios& ratios) {
  const JobRun run =
      cluster.Run({.file = folder + "/job.yaml", .settings = row.settings});
  double bytes_predicted = 0;
  for (const nlohmann::json& rank : run.prediction().at("ranks")) {
    bytes_predicted =
        std::max(bytes_predicted, rank.at("resident_bytes").get<double>());
  }
  const double seconds_predicted =
      run.prediction().at("step_seconds").get<double>();
  const double seconds = run.MedianStepSeconds(kStepsSkipped);
  const double bytes = run.MemoryBytesMax();
  constexpr double kMiB = 1 << 20;
  const double slower = run.MedianSlower(kStepsSkipped);
  std::printf(
      "%-36s %7.0f ms %7.0f ms %7.2f %6.0f MiB %6.0f MiB %7.2f %+6.0f %%\n",
      row.name, 1e3 * seconds, 1e3 * seconds_predicted,
      seconds / seconds_predicted, bytes / kMiB, bytes_predicted / kMiB,
      bytes / bytes_predicted, 100 * slower);
  std::fflush(stdout);
  ratios.step.push_back(seconds / seconds_predicted);
  ratios.memory.push_back(bytes / bytes_predicted);
  ratios.slower_max = std::max(ratios.slower_max, slower);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void PrintRatios(const char* name, const std::vector<double>& ratios) {
  std::vector<double> errors;
  for (const double ratio : ratios) errors.push_back(std::abs(ratio - 1));
  std::printf("%s: median ratio %.2f; median %.1f %% off, furthest %.1f %%\n",
              name, Median(ratios), 100 * Median(errors),
              100 * *std::max_element(errors.begin(), errors.end()));
}

struct Options {
  std::string wanted;  // part of the rows' names
  bool items = false;
  std::string nvme = "/var/tmp";  // a directory for rows that rest on a disk
};

// How workers are started that have a disk.
std::vector<std::string> NvmeFlags(const std::vector<Row>& rows,
                                   const std::string& directory) {
  for (const Row& row : rows) {
    for (const std::string& setting : row.settings) {
      if (!absl::EndsWith(setting, "=nvme")) continue;
      return {"--nvme", directory, "--nvme-size", "4GiB"};
    }
  }
  return {};
}

int Main(const Options& options) {
  const std::string folder = Prepare();
  Ratios ratios;
  std::printf("%-36s %10s %10s %7s %10s %10s %7s %8s\n",
              "measured over predicted", "step", "predicted", "ratio", "memory",
              "predicted", "ratio", "slower");
  for (const int workers : {1, 2, 4}) {
    std::vector<Row> rows = Rows();
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                              [&](const Row& row) {
                                return row.workers != workers ||
                                       !absl::StrContains(row.name,
                                                          options.wanted);
                              }),
               rows.end());
    if (rows.empty()) continue;
    const DaemonCluster cluster(folder, workers, NvmeFlags(rows, options.nvme));
    for (const Row& row : rows) {
      RunRow(row, cluster, folder, ratios);
      if (options.items) PrintItems(row, folder, options.nvme);
    }
  }
  if (!ratios.step.empty()) {
    std::printf("%zu configurations\n", ratios.step.size());
    PrintRatios("step time", ratios.step);
    PrintRatios("memory", ratios.memory);
    std::printf("machine: up to %.0f %% slower than at calibration\n",
                100 * ratios.slower_max);
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  CLI::App app("Holds plans against what they come to on this machine.");
  troupe::Options options;
  app.add_option("rows", options.wanted, "a part of their names");
  app.add_flag("--items", options.items, "memory by line item");
  app.add_option("--nvme", options.nvme, "a directory on a disk");
  CLI11_PARSE(app, argc, argv);
  CHECK_OK(troupe::StartLog(
      {.name = "prediction_bench", .level = troupe::LogLevel::kWarning}));
  return troupe::Main(options);
}
