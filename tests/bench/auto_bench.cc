// Is what `parallelism: auto` chooses the fastest on real workers, too? Draws
// jobs by seed, with two to four workers of this machine whose memory binds.
// For each the search chooses; then the choice and other plans that the search
// simulated train for a few steps on real daemons: the next best ones, and some
// from all of its list. Prints what each choice took over the fastest plan that
// was measured.
//
//   bazel run //tests/bench:auto_bench                       # 20 jobs
//   bazel run //tests/bench:auto_bench -- --jobs 3 --plans 4 --rounds 1
//   bazel run //tests/bench:auto_bench -- --first 12 --jobs 1 --ways
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "tests/bench/daemon_cluster.h"

namespace troupe {
namespace {

using Settings = std::vector<std::string>;
using nlohmann::json;

constexpr char kJob[] = R"(name: auto
model:
  architecture: gpt2
  num_hidden_layers: 4
  hidden_size: 256
  num_attention_heads: 4
  vocab_size: 256
  max_position_embeddings: 128
data: {tokens: text.tokens}
training: {steps: 9, global_batch_size: 8}
optimizer: {lr: 1.0e-4}
)";
constexpr int kStepsSkipped = 3;
constexpr double kWithin = 1.05;

class Draw {
 public:
  explicit Draw(uint64_t seed) : stream_{.seed = seed} {}
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return *(values.begin() + PhiloxUint32(stream_, next_++) % values.size());
  }

 private:
  const PhiloxStream stream_;
  uint64_t next_ = 0;
};

struct DrawnJob {
  std::string name;
  int workers = 1;
  int memory_percent = 100;  // of what one rank needs that has all
  Settings settings;
};

DrawnJob DrawJob(uint64_t seed) {
  Draw draw(seed);
  DrawnJob job = {.workers = draw.Of({2, 3, 4})};
  const int hidden = draw.Of({128, 256, 384});
  const int blocks = draw.Of({3, 4, 6});
  const int length = draw.Of({64, 128});
  const int vocabulary = draw.Of({256, 8000});
  const int batch = draw.Of({8, 12, 24});
  const bool any_memory = draw.Of({true, false});
  job.memory_percent = draw.Of({45, 70, 120});
  job.settings = {
      absl::StrCat("model.hidden_size=", hidden),
      absl::StrCat("model.num_hidden_layers=", blocks),
      absl::StrCat("model.max_position_embeddings=", length),
      absl::StrCat("model.vocab_size=", vocabulary),
      absl::StrCat("training.global_batch_size=", batch),
  };
  if (any_memory) job.settings.push_back("memory.mode=auto");
  job.name = absl::StrCat(seed, ": ", job.workers, " workers, gpt2 ", hidden,
                          "x", blocks, ", ", batch, " of ", length,
                          vocabulary > 256 ? ", 8000 tokens" : "", ", memory ",
                          job.memory_percent, " %");
  return job;
}

// The folder with the job and its tokens, 1 MiB of noise.
std::string Prepare() {
  const std::string folder =
      std::filesystem::temp_directory_path() / "troupe-auto-bench";
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

void AddSettings(const Settings& settings, std::vector<std::string>& command) {
  for (const std::string& setting : settings) {
    command.insert(command.end(), {"--set", setting});
  }
}

// Of one rank that has all, with micro-batches of one sequence.
int64_t BytesOfOneRank(const std::string& file, Settings settings) {
  settings.insert(settings.end(),
                  {"parallelism.data=1", "training.micro_batch_size=1",
                   "memory.mode=null"});
  std::vector<std::string> command = {"plan", file, "--workers", "1", "--json"};
  AddSettings(settings, command);
  const json plan = json::parse(RunTroupe(command));
  return plan.at("prediction").at("ranks").at(0).at("peak_bytes");
}

// What to set for a way of the search, in a job that leaves it open.
Settings SettingsOf(const json& way) {
  Settings settings;
  const json& fields = way.at("fields");
  for (const auto& [name, value] : fields.at("parallelism").items()) {
    if (value.is_null() || value.empty()) continue;
    CHECK(!value.is_array()) << name << " has no form on a command line";
    settings.push_back(absl::StrCat(
        "parallelism.", name, "=",
        value.is_string() ? value.get<std::string>() : value.dump()));
  }
  if (!fields.at("micro_batch_size").is_null()) {
    settings.push_back(absl::StrCat("training.micro_batch_size=",
                                    fields.at("micro_batch_size").dump()));
  }
  const std::string recompute = fields.value("recompute", "");
  if (!recompute.empty()) {
    settings.push_back("memory.recompute.mode=" + recompute);
  }
  if (settings.empty()) settings.push_back("parallelism.data=1");
  return settings;
}

bool IsOnCommandLine(const json& way) {
  const json& parallelism = way.at("fields").at("parallelism");
  return std::none_of(
      parallelism.begin(), parallelism.end(),
      [](const json& value) { return value.is_array() && !value.empty(); });
}

struct Measured {
  Settings settings;
  double predicted = 0;
  double seconds = std::numeric_limits<double>::infinity();
};

// The first, the next best, and as many from all over the list.
std::vector<Measured> PlansToMeasure(const json& explanation, int count) {
  std::vector<const json*> ways;
  for (const json& way : explanation.at("ways")) {
    if (way.at("fits").get<bool>() && IsOnCommandLine(way)) {
      ways.push_back(&way);
    }
  }
  std::set<size_t> places;
  for (size_t i = 0; i < ways.size() && static_cast<int>(i) <= count / 2; ++i) {
    places.insert(i);
  }
  for (int i = 0; i < count; ++i) {
    if (static_cast<int>(places.size()) >= count) break;
    places.insert(ways.size() * (i + 1) / (count + 1));
  }
  std::vector<Measured> plans;
  for (const size_t place : places) {
    if (place >= ways.size()) continue;
    plans.push_back({.settings = SettingsOf(*ways[place]),
                     .predicted = ways[place]->at("step_seconds")});
  }
  return plans;
}

struct Options {
  int first = 1;  // seed
  int jobs = 20;
  int plans = 6;   // of each, besides the choice's
  int rounds = 2;  // of which the faster counts
  bool ways = false;
};

// The choice over the fastest; 0: nothing fits.
double RunJob(const DrawnJob& job, const std::string& folder,
              const Options& options) {
  const std::string file = folder + "/job.yaml";
  const int64_t bytes =
      BytesOfOneRank(file, job.settings) / 100 * job.memory_percent;
  const DaemonCluster cluster(
      folder, job.workers,
      {"--threads", "1", "--device-memory", absl::StrCat(bytes)});
  std::vector<std::string> command = {
      "plan",      file,     "--dir", folder + "/cluster",
      "--explain", "--json", "--set", "parallelism.mode=auto"};
  AddSettings(job.settings, command);
  const json explanation = json::parse(RunTroupe(command));
  std::vector<Measured> plans = PlansToMeasure(explanation, options.plans + 1);
  for (int round = 0; round < options.rounds; ++round) {
    for (Measured& plan : plans) {
      BenchJob run = {.file = file, .settings = job.settings};
      run.settings.insert(run.settings.end(), plan.settings.begin(),
                          plan.settings.end());
      run.settings.push_back("memory.mode=null");  // it is chosen
      plan.seconds = std::min(
          plan.seconds, cluster.Run(run).MedianStepSeconds(kStepsSkipped));
    }
  }
  CHECK(!plans.empty()) << "the search found nothing that can be measured";
  const Measured& chosen = plans.front();
  const auto fastest = std::min_element(
      plans.begin(), plans.end(), [](const Measured& a, const Measured& b) {
        return a.seconds < b.seconds;
      });
  const double ratio = chosen.seconds / fastest->seconds;
  std::printf("%-62s %6.1f ms %6.1f ms %6.1f ms %7.3f  %s\n", job.name.c_str(),
              1e3 * chosen.predicted, 1e3 * chosen.seconds,
              1e3 * fastest->seconds, ratio,
              absl::StrJoin(chosen.settings, " ").c_str());
  if (fastest->settings != chosen.settings) {
    std::printf("%-62s fastest: %s\n", "",
                absl::StrJoin(fastest->settings, " ").c_str());
  }
  for (const Measured& plan : plans) {
    if (!options.ways) break;
    std::printf("    %6.1f ms, predicted %6.1f ms: %s\n", 1e3 * plan.seconds,
                1e3 * plan.predicted,
                absl::StrJoin(plan.settings, " ").c_str());
  }
  std::fflush(stdout);
  return ratio;
}

int Main(const Options& options) {
  const std::string folder = Prepare();
  std::printf("%-62s %9s %9s %9s %7s  %s\n", "job", "predicted", "measured",
              "fastest", "ratio", "chosen");
  int within = 0;
  double worst = 1;
  for (int i = 0; i < options.jobs; ++i) {
    const double ratio = RunJob(DrawJob(options.first + i), folder, options);
    if (ratio <= kWithin) ++within;
    worst = std::max(worst, ratio);
  }
  std::printf("%d of %d choices within %.0f %% of the fastest; worst %.3f\n",
              within, options.jobs, 100 * (kWithin - 1), worst);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::Options options;
  CLI::App app("Choices of parallelism: auto on real workers");
  app.add_option("--first", options.first, "the first job's seed");
  app.add_option("--jobs", options.jobs, "how many");
  app.add_option("--plans", options.plans, "measured beside each choice");
  app.add_option("--rounds", options.rounds, "of each plan; the faster counts");
  app.add_flag("--ways", options.ways, "all that was measured");
  CLI11_PARSE(app, argc, argv);
  return troupe::Main(options);
}
