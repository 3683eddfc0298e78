#include "tests/faults/cluster_of_runners.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/must_not_wait.h"
#include "proto/protocol_version.h"
#include "scheduler/cluster/hand_out.h"
#include "storage/tier/allocator.h"
#include "tests/faults/slow_disk.h"

namespace troupe {
namespace {

// So often the scheduler's daemon ticks.
constexpr absl::Duration kTick = absl::Milliseconds(200);
constexpr absl::Duration kHeartbeat = absl::Seconds(1);

std::vector<TierBudget> Budgets() {
  std::vector<TierBudget> budgets(2);
  budgets[0].set_tier(DEVICE);
  budgets[1].set_tier(HOST);
  for (TierBudget& budget : budgets) budget.set_bytes(int64_t{1} << 30);
  return budgets;
}

}  // namespace

struct ClusterOfRunners::Worker {
  Worker(Turns& turns, std::function<void(uint64_t)> wrote)
      : device(NewCpuDevice({.threads = 1})),
        arenas(Budgets(), allocator),
        disk(turns, std::move(wrote)),
        resources{*device, arenas, disk, clock} {}

  const RealClock clock;
  HostAllocator allocator;
  const std::unique_ptr<Device> device;
  const TierArenas arenas;
  SlowDisk disk;
  const RankResources resources;
  absl::Mutex mutex;
  std::unique_ptr<RankRunner> runner ABSL_GUARDED_BY(mutex);
};

ClusterOfRunners::ClusterOfRunners(const Options& options)
    : options_(options), cluster_(options.limits, compiler_) {
  for (int i = 0; i < options.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(turns_, [this](uint64_t bytes) {
      Pass(absl::Seconds(bytes / options_.bytes_per_second));
    }));
    Register request;
    request.set_protocol_version(kProtocolVersion);
    WorkerDescription& worker = *request.mutable_worker();
    worker.set_name(absl::StrCat("w", i));
    worker.set_device("cpu");
    worker.set_threads(1);
    worker.set_host_cores(2);
    for (const TierBudget& budget : Budgets()) *worker.add_budgets() = budget;
    Apply([&](Cluster& cluster, absl::Time now, Actions& actions) {
      CHECK_OK(cluster.RegisterWorker(request, now, actions).status());
    });
  }
}

ClusterOfRunners::~ClusterOfRunners() {
  for (const auto& worker : workers_) {
    // Its last words may be on their way still.
    std::unique_ptr<RankRunner> runner;
    {
      absl::MutexLock lock(&worker->mutex);
      runner.swap(worker->runner);
    }
  }
}

void ClusterOfRunners::Apply(const Event& event) {
  {
    absl::MutexLock lock(&mutex_);
    Actions actions;
    const MustNotWait held;
    event(cluster_, now_, actions);
    for (Action& action : actions) outbox_.push_back(std::move(action));
  }
  Deliver();
}

void ClusterOfRunners::Deliver() {
  absl::MutexLock delivery(&delivery_);
  while (true) {
    absl::optional<Action> action;
    {
      absl::MutexLock lock(&mutex_);
      if (outbox_.empty()) return;
      action = std::move(outbox_.front());
      outbox_.pop_front();
      Actions more;
      if (const auto* asked = std::get_if<CompileJob>(&*action)) {
        cluster_.Compiled(asked->job, *asked->compilation,
                          CompileFirstFit(compiler_, *asked->compilation), now_,
                          more);
      } else if (const auto* start = std::get_if<AwaitStored>(&*action)) {
        cluster_.Stored(*start, absl::OkStatus(), now_, more);
      }
      if (const auto* stored = std::get_if<SendWhenStored>(&*action)) {
        more.push_back(stored->send);
      }
      for (Action& next : more) outbox_.push_back(std::move(next));
    }
    if (const auto* send = std::get_if<SendToWorker>(&*action)) {
      Tell(send->worker, Completed(*send, compiler_));
    }
  }
}

void ClusterOfRunners::Tell(WorkerId id, const SchedulerMessage& message) {
  Worker& worker = *workers_[id.value() - 1];
  absl::MutexLock lock(&worker.mutex);
  if (message.has_start()) {
    CHECK(worker.runner == nullptr) << "one job at a time";
    worker.runner = std::make_unique<RankRunner>(
        message.start(),
        RankRunnerOptions{.resources = worker.resources,
                          .send =
                              [this, id](const WorkerMessage& sent) {
                                Apply([&](Cluster& cluster, absl::Time now,
                                          Actions& actions) {
                                  cluster.HandleMessage(id, sent, now, actions);
                                });
                                return absl::OkStatus();
                              },
                          .address = "127.0.0.1",
                          .stop_grace = absl::ZeroDuration()});
  } else if (worker.runner != nullptr) {
    worker.runner->OnMessage(message);
  }
}

void ClusterOfRunners::Heartbeats() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    WorkerMessage message;
    message.mutable_heartbeat()->set_memory_bytes(1);
    {
      absl::MutexLock lock(&workers_[i]->mutex);
      if (workers_[i]->runner != nullptr) {
        *message.mutable_heartbeat()->mutable_progress() =
            workers_[i]->runner->Progress();
      }
    }
    Apply([&](Cluster& cluster, absl::Time now, Actions& actions) {
      cluster.HandleMessage(WorkerId(static_cast<int64_t>(i) + 1), message, now,
                            actions);
    });
  }
}

void ClusterOfRunners::Pass(absl::Duration time) {
  while (time > absl::ZeroDuration()) {
    const absl::Duration piece = std::min(time, kTick);
    time -= piece;
    since_second_ += piece;
    {
      absl::MutexLock now(&mutex_);
      now_ += piece;
    }
    if (since_second_ >= kHeartbeat) {
      since_second_ = absl::ZeroDuration();
      Heartbeats();
      if (options_.each_second) {
        Apply([this](Cluster& cluster, absl::Time now, Actions& actions)
                  ABSL_NO_THREAD_SAFETY_ANALYSIS {
                    options_.each_second(cluster, job_, now, actions);
                  });
      }
    }
    Apply([](Cluster& cluster, absl::Time now, Actions& actions) {
      cluster.Tick(now, actions);
    });
  }
}

JobStatus ClusterOfRunners::Run(const JobSpec& job) {
  const auto considered = [&] {
    absl::MutexLock lock(&mutex_);
    return cluster_.Consider(job);
  }();
  CHECK_OK(considered.status());
  const CompileOutcome outcome = CompileFirstFit(compiler_, *considered);
  Apply([&](Cluster& cluster, absl::Time now,
            Actions& actions) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto id = cluster.Submit(job, outcome, now, actions);
    CHECK_OK(id.status());
    job_ = *id;
  });
  absl::MutexLock lock(&mutex_);
  const auto over = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const Job& it = **cluster_.FindJob(job_);
    return it.ended() && it.run == nullptr;
  };
  mutex_.Await(absl::Condition(&over));
  return (*cluster_.FindJob(job_))->status;
}

std::vector<WorkerStatus> ClusterOfRunners::Workers() const {
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerStatus> workers;
  for (const auto& [id, worker] : cluster_.workers().all()) {
    workers.push_back(worker.status);
  }
  return workers;
}

absl::Duration ClusterOfRunners::elapsed() const {
  absl::MutexLock lock(&mutex_);
  return now_ - absl::FromUnixSeconds(1'000'000);
}

}  // namespace troupe
