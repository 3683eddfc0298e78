// How long does a dead worker cost? Real daemons: a job runs quietly; then it
// runs again while one of its workers, drawn at random, is killed (SIGKILL) at
// a random moment again and again, and another process of its name is started.
// Prints for each job how many kills it survived, whether its losses are those
// of the quiet run to the bit, how many steps each kill cost at most, and the
// time from a kill to the next finished step.
//
//   bazel run //tests/bench:recovery_bench -- [--kills N] [--seed S] [FILTER]
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clients/cpp/client.h"
#include "proto/base/check.h"
#include "tests/bench/daemon_cluster.h"

extern char** environ;

namespace troupe {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  std::vector<std::string> settings;
};

const Case kCases[] = {
    {"data 4", {"parallelism.data=4"}},
    {"data 4, ZeRO 3", {"parallelism.data=4", "parallelism.zero=3"}},
    {"four stages, 1F1B",
     {"parallelism.pipeline=4", "parallelism.pipeline_schedule=1f1b"}},
    {"two stages x data 2", {"parallelism.pipeline=2", "parallelism.data=2"}},
    {"tensor 2 x data 2, fp16, optimizer on the host",
     {"parallelism.tensor=2", "parallelism.data=2", "training.precision=fp16",
      "memory.optimizer=host"}},
    {"Chimera, two stages twice, data 2, ZeRO 1",
     {"parallelism.pipeline=2", "parallelism.data=2", "parallelism.zero=1",
      "parallelism.pipeline_schedule=chimera"}},
};

constexpr char kJob[] = R"(
name: recovery
model: {architecture: gpt2, num_hidden_layers: 4, hidden_size: 64,
        num_attention_heads: 4, vocab_size: 256, max_position_embeddings: 64}
data: {tokens: TOKENS}
training: {steps: 100, global_batch_size: 8, micro_batch_size: 1, seed: 7}
optimizer: {lr: 1.0e-3}
recovery: {copies: 1, every: 1, restarts: 1000000}
)";

struct Options {
  int kills = 50;  // of each job
  uint32_t seed = 1;
  std::string filter;
};

// What a job has said so far.
class Watched {
 public:
  Watched(const std::string& address, const std::string& trust, int64_t job)
      : thread_([=, this] { Run(address, trust, job); }) {}
  ~Watched() { thread_.join(); }

  struct Now {
    JobStatus status;
    int64_t last_step = 0;
    absl::Time last_step_at;
    absl::Time first_of_attempt;  // a step, of the last attempt that has one
    int32_t attempt_of_step = 0;
    std::vector<double> losses;
    std::vector<std::string> events;
    bool ended = false;
  };
  Now now() const {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  // The next finished step of an attempt after this one; false: the job ended.
  bool AwaitStepAfter(int32_t attempt, absl::Time& at) const {
    absl::MutexLock lock(&mutex_);
    const auto come = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return now_.ended || now_.attempt_of_step > attempt;
    };
    mutex_.Await(absl::Condition(&come));
    at = now_.first_of_attempt;
    return now_.attempt_of_step > attempt;
  }

 private:
  void Run(const std::string& address, const std::string& trust, int64_t job) {
    auto client = Client::Connect(address, {.trust = {.certificates = trust}});
    CHECK(client.ok()) << client.status();
    const absl::Status watched = (*client)->Watch(
        {.id = job},
        [&](const WatchJobResponse& news) {
          absl::MutexLock lock(&mutex_);
          now_.status = news.status();
          for (const StepRecord& step : news.steps()) {
            CHECK_EQ(step.step(), now_.last_step + 1) << "a step is missing";
            now_.last_step = step.step();
            now_.last_step_at = absl::Now();
            now_.losses.push_back(step.loss());
            if (now_.attempt_of_step == news.status().attempt()) continue;
            if (news.status().state() == RECOVERING) continue;
            now_.attempt_of_step = news.status().attempt();
            now_.first_of_attempt = now_.last_step_at;
          }
          for (const JobEvent& event : news.events()) {
            now_.events.push_back(event.text());
          }
        },
        [] { return true; });
    absl::MutexLock lock(&mutex_);
    now_.ended = true;
    if (!watched.ok()) std::cerr << watched << "\n";
  }

  mutable absl::Mutex mutex_;
  Now now_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

std::vector<std::string> CommandOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/cmdline"));
  std::vector<std::string> command;
  for (std::string word; std::getline(file, word, '\0');) {
    command.push_back(word);
  }
  return command;
}

pid_t Start(std::vector<std::string> command, const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {1, 2}) {
    posix_spawn_file_actions_addopen(&actions, stream, log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
  }
  pid_t pid = 0;
  CHECK_EQ(posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(),
                       environ),
           0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

double Percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values.at(static_cast<size_t>(part * (values.size() - 1)));
}

class Bench {
 public:
  Bench(const Options& options, const std::string& folder)
      : options_(options),
        folder_(folder),
        random_(options.seed),
        cluster_(folder, 5, {"--threads", "1"}) {
    const auto endpoints = nlohmann::json::parse(
        std::ifstream(folder_ + "/cluster/endpoints.json"));
    address_ = endpoints.at("grpc");
    auto client = Client::Connect(address_, {.trust = trust()});
    CHECK(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  ~Bench() {
    for (const pid_t pid : started_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  // False: something was lost.
  bool Run(const Case& of) {
    // A kill every few steps, and room for more.
    const int steps = 40 + options_.kills * 30;
    std::vector<double> quiet;
    {
      const Watched watched(address_, TrustDir(), Submit(of, steps));
      while (!watched.now().ended) absl::SleepFor(absl::Milliseconds(50));
      quiet = watched.now().losses;
    }
    CHECK_EQ(static_cast<int>(quiet.size()), steps);
    const Watched watched(address_, TrustDir(), Submit(of, steps));
    std::vector<double> seconds;
    int survived = 0;
    for (int k = 0; k < options_.kills; ++k) {
      if (!KillOne(watched, seconds)) break;
      ++survived;
    }
    while (!watched.now().ended) absl::SleepFor(absl::Milliseconds(50));
    const Watched::Now end = watched.now();
    int64_t most_lost = 0;
    for (const std::string& event : end.events) {
      int64_t again = 0;
      const auto at = event.find(" run again");
      if (at == std::string::npos) continue;
      const auto comma = event.rfind(", ", at);
      CHECK(sscanf(event.c_str() + comma, ", %ld", &again) == 1) << event;
      most_lost = std::max(most_lost, again);
    }
    const bool same = end.losses == quiet;
    const bool good = end.status.state() == SUCCEEDED && same;
    std::cout << absl::StrFormat(
        "%-46s %4d of %-4d  %-9s %-22s lost at most %d; median %.2f s, 90 %% "
        "%.2f s, slowest %.2f s\n",
        of.name, survived, options_.kills, JobState_Name(end.status.state()),
        same ? "losses equal bit by bit" : "LOSSES DIFFER", most_lost,
        Percentile(seconds, 0.5), Percentile(seconds, 0.9),
        Percentile(seconds, 1));
    std::cout << "    the slowest: " << slowest_said_ << std::endl;
    if (!good) std::cout << end.status.reason() << std::endl;
    return good && survived == options_.kills;
  }

 private:
  std::string TrustDir() const { return folder_ + "/cluster/trust/client"; }
  PeerTrust trust() const { return {.certificates = TrustDir()}; }

  int64_t Submit(const Case& of, int steps) const {
    std::vector<std::string> submit = {
        "submit", folder_ + "/job.yaml",
        "--dir",  folder_ + "/cluster",
        "--set",  absl::StrCat("training.steps=", steps)};
    for (const std::string& setting : of.settings) {
      submit.insert(submit.end(), {"--set", setting});
    }
    const std::string said = RunTroupe(submit);
    return std::stoll(said.substr(std::string("job ").size()));
  }

  // Kills a worker of the job at a moment that has nothing to do with what it
  // does, starts another, and waits for the next step.
  bool KillOne(const Watched& watched, std::vector<double>& seconds) {
    const auto draw = [&](int below) {
      return static_cast<int>(random_() % below);
    };
    absl::SleepFor(absl::Milliseconds(draw(250)));
    while (watched.now().status.state() != RUNNING) {
      if (watched.now().ended) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    const Watched::Now before = watched.now();
    const std::string victim =
        before.status.workers(draw(before.status.workers_size()));
    pid_t pid = 0;
    const auto workers = client_->Workers();
    CHECK(workers.ok()) << workers.status();
    for (const WorkerStatus& worker : workers->workers()) {
      if (worker.description().name() == victim &&
          (worker.state() == WorkerStatus::BUSY)) {
        pid = static_cast<pid_t>(worker.pid());
      }
    }
    if (pid == 0) return !watched.now().ended && KillOne(watched, seconds);
    const std::vector<std::string> command = CommandOf(pid);
    if (watched.now().ended) return false;
    const absl::Time killed = absl::Now();
    CHECK_EQ(kill(pid, SIGKILL), 0);
    const auto child = std::find(started_.begin(), started_.end(), pid);
    if (child != started_.end()) {
      waitpid(pid, nullptr, 0);
      started_.erase(child);
    }
    started_.push_back(
        Start(command, folder_ + "/cluster/logs/" + victim + ".log"));
    absl::Time next;
    if (!watched.AwaitStepAfter(before.status.attempt(), next)) return false;
    seconds.push_back(absl::ToDoubleSeconds(next - killed));
    if (seconds.back() >= *std::max_element(seconds.begin(), seconds.end())) {
      slowest_said_ = watched.now().events.back();
    }
    return true;
  }

  const Options options_;
  const std::string folder_;
  std::mt19937 random_;
  DaemonCluster cluster_;
  std::string address_;
  std::unique_ptr<Client> client_;
  std::vector<pid_t> started_;  // by this process
  std::string slowest_said_;
};

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--kills" && i + 1 < argc) {
      options.kills = std::stoi(argv[++i]);
    } else if (word == "--seed" && i + 1 < argc) {
      options.seed = std::stoul(argv[++i]);
    } else {
      options.filter = word;
    }
  }
  const std::string folder =
      fs::temp_directory_path() / absl::StrCat("troupe-recovery-", getpid());
  fs::create_directories(folder);
  {
    std::ofstream text(folder + "/words.txt");
    for (int i = 0; i < 2000; ++i) {
      text << "line " << i * i % 97 << " of a text that repeats;\n";
    }
  }
  RunTroupe({"data", "prepare", folder + "/words.txt", "--out",
             folder + "/words.tokens"});
  std::string job = kJob;
  job.replace(job.find("TOKENS"), 6, folder + "/words.tokens");
  std::ofstream(folder + "/job.yaml") << job;
  bool good = true;
  {
    Bench bench(options, folder);
    for (const Case& of : kCases) {
      if (!absl::StrContains(of.name, options.filter)) continue;
      good &= bench.Run(of);
    }
  }
  if (good) {
    fs::remove_all(folder);
  } else {
    std::cout << "logs are in " << folder << "/cluster/logs\n";
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
