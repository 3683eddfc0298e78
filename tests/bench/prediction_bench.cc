// Do plans tell the truth? Trains models of several sizes, precisions, replica
// counts and pipelines for a few steps on real daemons of this machine, and
// prints for each what its plan had predicted over what was measured: the time
// of a step, and the resident memory of the worker that used most. The last
// column is how much slower than at its calibration the workers found their
// machine meanwhile: a ratio that is as large is the machine's.
//
//   bazel run //tests/bench:prediction_bench
//   bazel run //tests/bench:prediction_bench -- stages   # rows of that name
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/philox.h"
#include "tests/bench/daemon_cluster.h"

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
  return {
      {"gpt2 256x4", 1, {}},
      {"gpt2 256x4 bf16", 1, bf16},
      {"gpt2 512x6", 1, wide},
      {"gpt2 512x6 bf16", 1, Join({wide, bf16})},
      {"gpt2 768x12, 1 sequence", 1, large},
      {"gpt2 768x12 bf16", 1, Join({large, bf16})},
      {"gpt2 256x4, vocabulary 32000", 1, {"model.vocab_size=32000"}},
      {"gpt2 256x4, 8 at once", 1, {"training.micro_batch_size=8"}},
      {"llama 512x6", 1, llama},
      {"llama 512x6 bf16", 1, Join({llama, bf16})},
      {"gpt2 256x4, 2 replicas", 2, replicas},
      {"gpt2 512x6, 2 replicas", 2, Join({wide, replicas})},
      {"gpt2 512x6 bf16, 2 replicas", 2, Join({wide, bf16, replicas})},
      {"llama 512x6 bf16, 2 replicas", 2, Join({llama, bf16, replicas})},
      {"2 stages, naive", 2, Stages(2, "naive")},
      {"2 stages, gpipe", 2, Stages(2, "gpipe")},
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
      {"2 stages, vocabulary 32000", 2,
       Join({Settings{"model.vocab_size=32000"}, Stages(2, "1f1b")})},
      {"4 stages, gpipe", 4, Stages(4, "gpipe")},
      {"4 stages, 1f1b, 512x6", 4, Join({wide, Stages(4, "1f1b", 16)})},
      {"4 stages, pipedream_2bw", 4, Stages(4, "pipedream_2bw")},
      {"2 stages x 2 replicas, 1f1b", 4,
       Join({Stages(2, "1f1b", 16), replicas})},
      {"2 stages x 2 replicas, zb_h1, 512x6", 4,
       Join({wide, Stages(2, "zb_h1", 16), replicas})},
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

// How far what was measured is from its prediction, by row.
struct Errors {
  std::vector<double> step;
  std::vector<double> memory;
  double slower_max = 0;  // of the machine
};

void RunRow(const Row& row, const DaemonCluster& cluster,
            const std::string& folder, Errors& errors) {
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
  errors.step.push_back(std::abs(seconds / seconds_predicted - 1));
  errors.memory.push_back(std::abs(bytes / bytes_predicted - 1));
  errors.slower_max = std::max(errors.slower_max, slower);
}

void PrintErrors(const char* name, std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  std::printf("%s: median %.1f %% off, furthest %.1f %%\n", name,
              100 * errors[errors.size() / 2], 100 * errors.back());
}

int Main(const std::string& wanted) {
  const std::string folder = Prepare();
  Errors errors;
  std::printf("%-36s %10s %10s %7s %10s %10s %7s %8s\n",
              "measured over predicted", "step", "predicted", "ratio", "memory",
              "predicted", "ratio", "slower");
  for (const int workers : {1, 2, 4}) {
    std::vector<Row> rows = Rows();
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                              [&](const Row& row) {
                                return row.workers != workers ||
                                       !absl::StrContains(row.name, wanted);
                              }),
               rows.end());
    if (rows.empty()) continue;
    const DaemonCluster cluster(folder, workers);
    for (const Row& row : rows) RunRow(row, cluster, folder, errors);
  }
  if (!errors.step.empty()) {
    std::printf("%zu configurations\n", errors.step.size());
    PrintErrors("step time", errors.step);
    PrintErrors("memory", errors.memory);
    std::printf("machine: up to %.0f %% slower than at calibration\n",
                100 * errors.slower_max);
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  return troupe::Main(argc > 1 ? argv[1] : "");
}
