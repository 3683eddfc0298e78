#include "tests/cluster/cluster_test_base.h"

#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/check.h"
#include "proto/base/process_state.h"
#include "tests/cluster/brief_calibration.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr char kTinyJob[] = R"(
name: tiny
model: {architecture: gpt2, num_hidden_layers: 2, hidden_size: 32,
        num_attention_heads: 2, vocab_size: 256, max_position_embeddings: 16}
data: {tokens: tiny.tokens, validation_fraction: 0.1}
training: {steps: 4, global_batch_size: 8, micro_batch_size: 1, seed: 7}
optimizer: {lr: 1.0e-3}
parallelism: {data: 2}
)";

// A text with some structure, the same in every run.
std::string SomeText() {
  std::string text;
  for (int i = 0; text.size() < 20000; ++i) {
    text += "line " + std::to_string(i * i % 97) + " of a text that repeats;\n";
  }
  return text;
}

}  // namespace

ClusterTestBase::ClusterTestBase() {
  const std::string name =
      testing::UnitTest::GetInstance()->current_test_info()->name();
  dir_ = fs::path(testing::TempDir()) / name;
  fs::remove_all(dir_);
  fs::create_directories(dir_);
  setenv("XDG_CACHE_HOME", testing::TempDir().c_str(), 1);
  const absl::Status calibrated = CalibrateBriefly(std::stoi(kThreads));
  EXPECT_TRUE(calibrated.ok()) << calibrated;
  std::ofstream(fs::path(dir_) / "tiny.yaml") << kTinyJob;
  std::ofstream(fs::path(dir_) / "tiny.txt") << SomeText();
  const Outcome prepared =
      RunProgram({kTroupe, "data", "prepare", dir_ + "/tiny.txt", "--out",
                  dir_ + "/tiny.tokens"});
  EXPECT_EQ(prepared.code, 0) << prepared.err;
}

ClusterTestBase::~ClusterTestBase() {
  const Outcome down = Troupe({"down"});
  if (!HasFailure()) return;
  for (const auto& log : fs::directory_iterator(fs::path(dir_) / "logs")) {
    std::cerr << "--- " << log.path() << "\n"
              << std::ifstream(log.path()).rdbuf() << "\n";
  }
}

void ClusterTestBase::Up(int workers, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "up", "--workers", std::to_string(workers), "--threads", kThreads};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome up = Troupe(arguments);
  ASSERT_EQ(up.code, 0) << up.err;
}

std::vector<std::string> ClusterTestBase::Command(
    std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), kTroupe);
  arguments.insert(arguments.end(), {"--dir", dir_});
  return arguments;
}

Outcome ClusterTestBase::Troupe(std::vector<std::string> arguments) const {
  return RunProgram(Command(std::move(arguments)));
}

std::vector<std::string> ClusterTestBase::SubmitCommand(
    const std::vector<std::string>& settings) const {
  std::vector<std::string> arguments = {"submit", dir_ + "/tiny.yaml"};
  for (const std::string& setting : settings) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  return arguments;
}

std::vector<std::string> ClusterTestBase::WithExperts(
    std::vector<std::string> settings) {
  settings.insert(settings.begin(),
                  {"model.architecture=mixtral", "model.intermediate_size=32",
                   "model.num_key_value_heads=2", "model.num_experts=4",
                   "model.num_experts_per_tok=2"});
  return settings;
}

int ClusterTestBase::Submit(const std::vector<std::string>& settings) const {
  const Outcome submitted = Troupe(SubmitCommand(settings));
  EXPECT_EQ(submitted.code, 0) << submitted.err;
  if (submitted.code != 0) return 0;
  return std::stoi(submitted.out.substr(std::string("job ").size()));
}

Outcome ClusterTestBase::Watch(int job) const {
  return Troupe({"watch", std::to_string(job)});
}

std::vector<double> ClusterTestBase::Losses(
    const std::vector<std::string>& settings) const {
  const int job = Submit(settings);
  const Outcome watched = Watch(job);
  EXPECT_EQ(watched.code, 0) << watched.out << watched.err;
  std::vector<double> losses;
  const nlohmann::json described = Describe(job);
  for (const nlohmann::json& step : described["steps"]) {
    losses.push_back(step["loss"].get<double>());
  }
  return losses;
}

nlohmann::json ClusterTestBase::Describe(int job) const {
  const Outcome outcome = Troupe({"describe", std::to_string(job), "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

void ClusterTestBase::CancelSomeStepsOn(int job) const {
  const absl::Time end = absl::Now() + absl::Seconds(60);
  const int64_t now = Describe(job)["steps_done"];
  while (Describe(job)["steps_done"] < now + 50 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(Troupe({"cancel", std::to_string(job)}).code, 0);
  Watch(job);
  const nlohmann::json described = Describe(job);
  EXPECT_EQ(described["state"], "CANCELLED") << described["reason"];
  EXPECT_GE(described["steps_done"], now + 50);
}

pid_t ClusterTestBase::WorkerPid(const std::string& name) const {
  std::ifstream in(dir_ + "/pids.json");
  const nlohmann::json cluster = nlohmann::json::parse(in);
  for (const nlohmann::json& member : cluster["members"]) {
    if (member["name"] == name) return member["pid"];
  }
  // No number will do: kill(-1) would end everything.
  CHECK(false) << "no " << name << " in pids.json";
  return 0;
}

void ClusterTestBase::Kill(const std::string& name) const {
  const pid_t process = WorkerPid(name);
  ASSERT_EQ(kill(process, SIGKILL), 0);
  while (IsRunning(int64_t{process})) absl::SleepFor(absl::Milliseconds(1));
}

}  // namespace troupe
