#include "tests/bench/scheduler_scale/clients.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(20);

}  // namespace

std::unique_ptr<Client> ConnectTo(const std::string& scheduler) {
  auto client = Client::Connect(scheduler, {.trust = {.insecure = 1},
                                            .connect = absl::Minutes(1),
                                            .call = absl::Minutes(5),
                                            .plan = absl::Minutes(5)});
  CHECK_OK(client.status());
  return *std::move(client);
}

JobWatcher::JobWatcher(const std::string& scheduler, int64_t job)
    : thread_([this, scheduler, job] { Watch(scheduler, job); }) {}

JobWatcher::~JobWatcher() { thread_.join(); }

void JobWatcher::Watch(const std::string& scheduler, int64_t job) {
  const std::unique_ptr<Client> client = ConnectTo(scheduler);
  CHECK_OK(client->Watch(
      {.id = job},
      [this](const WatchJobResponse& news) {
        const absl::Time now = absl::Now();
        absl::MutexLock lock(&mutex_);
        state_ = news.status().state();
        for (const StepRecord& step : news.steps()) seen_[step.step()] = now;
      },
      [] { return true; }));
}

bool JobWatcher::AwaitState(JobState state, absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  const auto is = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return state_ == state;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&is), time);
}

bool JobWatcher::AwaitStep(int64_t step, absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  const auto is = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return seen_.count(step) > 0;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&is), time);
}

absl::Time JobWatcher::SeenAt(int64_t step) const {
  absl::MutexLock lock(&mutex_);
  return seen_.at(step);
}

int64_t JobWatcher::steps_seen() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(seen_.size());
}

Prober::Prober(const Options& options, Latencies& latencies)
    : thread_([this, options, &latencies] { Probe(options, latencies); }) {}

Prober::~Prober() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Prober::Probe(const Options& options, Latencies& latencies) {
  const std::unique_ptr<Client> client = ConnectTo(options.scheduler);
  const auto time = [&](const char* rpc, const auto& call) {
    const absl::Time start = absl::Now();
    CHECK_OK(call().status());
    latencies.Add(absl::StrCat(options.when, ": ", rpc), absl::Now() - start);
  };
  while (true) {
    time("ListJobs", [&] { return client->ListJobs(); });
    time("ListWorkers", [&] { return client->Workers(); });
    if (options.job != 0) {
      time("DescribeJob", [&] { return client->Describe(options.job); });
    }
    if (options.other) options.other();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kPause)) return;
  }
}

}  // namespace troupe
