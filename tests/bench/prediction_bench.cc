// Do plans tell the truth? Trains models of several sizes, precisions and
// replica counts for a few steps on real daemons of this machine, and prints
// for each what its plan had predicted over what was measured: the time of a
// step, and the resident memory of the worker that used most.
//
//   bazel run //tests/bench:prediction_bench
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "tests/cluster/troupe_program.h"

namespace troupe {
namespace {

struct Row {
  const char* name;
  int workers;  // one replica each
  std::vector<const char*> settings;
};

// Each line changes what the base job says.
const std::vector<Row>& Rows() {
  static const auto* const kRows = new std::vector<Row>{
      {"gpt2 256x4", 1, {}},
      {"gpt2 256x4 bf16", 1, {"training.precision=bf16"}},
      {"gpt2 512x6", 1, {"model.hidden_size=512", "model.num_hidden_layers=6"}},
      {"gpt2 512x6 bf16",
       1,
       {"model.hidden_size=512", "model.num_hidden_layers=6",
        "training.precision=bf16"}},
      {"gpt2 768x12, 1 sequence",
       1,
       {"model.hidden_size=768", "model.num_hidden_layers=12",
        "model.num_attention_heads=12", "training.micro_batch_size=1",
        "training.global_batch_size=2"}},
      {"gpt2 768x12 bf16",
       1,
       {"model.hidden_size=768", "model.num_hidden_layers=12",
        "model.num_attention_heads=12", "training.micro_batch_size=1",
        "training.global_batch_size=2", "training.precision=bf16"}},
      {"gpt2 256x4, vocabulary 32000", 1, {"model.vocab_size=32000"}},
      {"gpt2 256x4, 8 at once", 1, {"training.micro_batch_size=8"}},
      {"llama 512x6",
       1,
       {"model.architecture=llama", "model.hidden_size=512",
        "model.num_hidden_layers=6", "model.num_key_value_heads=2",
        "model.intermediate_size=1376"}},
      {"llama 512x6 bf16",
       1,
       {"model.architecture=llama", "model.hidden_size=512",
        "model.num_hidden_layers=6", "model.num_key_value_heads=2",
        "model.intermediate_size=1376", "training.precision=bf16"}},
      {"gpt2 256x4, 2 replicas", 2, {}},
      {"gpt2 512x6, 2 replicas",
       2,
       {"model.hidden_size=512", "model.num_hidden_layers=6"}},
      {"gpt2 512x6 bf16, 2 replicas",
       2,
       {"model.hidden_size=512", "model.num_hidden_layers=6",
        "training.precision=bf16"}},
      {"llama 512x6 bf16, 2 replicas",
       2,
       {"model.architecture=llama", "model.hidden_size=512",
        "model.num_hidden_layers=6", "model.num_key_value_heads=2",
        "model.intermediate_size=1376", "training.precision=bf16"}},
  };
  return *kRows;
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

Outcome Troupe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kTroupe);
  Outcome outcome = RunProgram(arguments);
  CHECK_EQ(outcome.code, 0) << outcome.out << outcome.err;
  return outcome;
}

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
  Troupe(
      {"data", "prepare", folder + "/text", "--out", folder + "/text.tokens"});
  return folder;
}

struct Measured {
  double step_predicted = 0;
  double step_seconds = 0;  // the median, the first two steps left out
  double bytes_predicted = 0;
  double bytes = 0;  // the largest seen after a step
};

Measured Evaluate(const nlohmann::json& job) {
  Measured measured;
  const nlohmann::json& prediction = job.at("plan").at("prediction");
  measured.step_predicted = prediction.at("step_seconds").get<double>();
  const auto number = [](const nlohmann::json& value) {
    return value.is_string() ? std::stod(value.get<std::string>())
                             : value.get<double>();
  };
  for (const nlohmann::json& rank : prediction.at("ranks")) {
    measured.bytes_predicted =
        std::max(measured.bytes_predicted, number(rank.at("resident_bytes")));
  }
  std::vector<double> seconds;
  for (const nlohmann::json& step : job.at("steps")) {
    measured.bytes = std::max(measured.bytes, number(step.at("memory_bytes")));
    seconds.push_back(step.at("step_seconds").get<double>());
  }
  CHECK_GT(seconds.size(), 4u);
  seconds.erase(seconds.begin(), seconds.begin() + 2);
  std::sort(seconds.begin(), seconds.end());
  measured.step_seconds = seconds[seconds.size() / 2];
  return measured;
}

Measured RunRow(const Row& row, const std::string& folder) {
  std::vector<std::string> submit = {
      "submit",
      folder + "/job.yaml",
      "--dir",
      folder + "/cluster",
      "--watch",
      "--set",
      absl::StrCat("parallelism.data=", row.workers)};
  for (const char* setting : row.settings) {
    submit.push_back("--set");
    submit.push_back(setting);
  }
  Troupe(submit);
  return Evaluate(nlohmann::json::parse(
      Troupe({"describe", "latest", "--json", "--dir", folder + "/cluster"})
          .out));
}

int Main() {
  const std::string folder = Prepare();
  double step_worst = 0;
  double bytes_worst = 0;
  std::printf("%-30s %10s %10s %7s %10s %10s %7s\n", "measured over predicted",
              "step", "predicted", "ratio", "memory", "predicted", "ratio");
  for (const int workers : {1, 2}) {
    Troupe({"up", "--workers", absl::StrCat(workers), "--dir",
            folder + "/cluster"});
    for (const Row& row : Rows()) {
      if (row.workers != workers) continue;
      const Measured m = RunRow(row, folder);
      const double step = m.step_seconds / m.step_predicted;
      const double bytes = m.bytes / m.bytes_predicted;
      constexpr double kMiB = 1 << 20;
      std::printf("%-30s %7.0f ms %7.0f ms %7.2f %6.0f MiB %6.0f MiB %7.2f\n",
                  row.name, 1e3 * m.step_seconds, 1e3 * m.step_predicted, step,
                  m.bytes / kMiB, m.bytes_predicted / kMiB, bytes);
      std::fflush(stdout);
      step_worst = std::max(step_worst, std::abs(step - 1));
      bytes_worst = std::max(bytes_worst, std::abs(bytes - 1));
    }
    Troupe({"down", "--dir", folder + "/cluster"});
  }
  std::printf("furthest off: step time %.0f %%, memory %.0f %%\n",
              100 * step_worst, 100 * bytes_worst);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace troupe

int main() { return troupe::Main(); }
