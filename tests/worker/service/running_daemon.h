// A worker's daemon on a thread of its own, for a test that has its scheduler
// (fake_scheduler.h).
#ifndef TROUPE_TESTS_WORKER_SERVICE_RUNNING_DAEMON_H_
#define TROUPE_TESTS_WORKER_SERVICE_RUNNING_DAEMON_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "ops/cpu/device.h"
#include "tests/worker/service/small_worker.h"
#include "worker/service/daemon.h"

namespace troupe {

inline bool IsRegister(const WorkerMessage& m) { return m.has_register_(); }
inline bool IsEnded(const WorkerMessage& m) { return m.has_ended(); }
inline bool IsStep(const WorkerMessage& m) { return m.has_step(); }
inline bool IsGoodbye(const WorkerMessage& m) { return m.has_goodbye(); }

inline MachineReading SomeReading() {
  MachineReading reading;
  reading.set_stolen_share(0.25);
  return reading;
}

class Running {
 public:
  explicit Running(const std::string& scheduler)
      : Running(scheduler, NewCpuDevice({.threads = 1})) {}
  Running(const std::string& scheduler,
          std::function<std::vector<std::string>()> unfit)
      : Running(scheduler, NewCpuDevice({.threads = 1}), absl::Minutes(1),
                std::move(unfit)) {}
  Running(const std::string& scheduler, std::unique_ptr<Device> device,
          absl::Duration leaving_answer_max = absl::Minutes(1),
          std::function<std::vector<std::string>()> unfit = nullptr,
          std::function<absl::Status()> start_afresh = nullptr)
      : worker_(std::move(device)),
        daemon_({.scheduler = scheduler,
                 .trust = {.insecure = 1},
                 .description = worker_.Description(),
                 .address = "127.0.0.1",
                 .machine = [] { return SomeReading(); },
                 .unfit = std::move(unfit),
                 .start_afresh = std::move(start_afresh),
                 .look_again = absl::Milliseconds(5),
                 .retry_first = absl::Milliseconds(5),
                 .retry_max = absl::Milliseconds(20),
                 .retry_refused_max = absl::Milliseconds(20),
                 .leaving_answer_max = leaving_answer_max},
                Resources()),
        thread_([this] { status_ = daemon_.Run(); }) {}
  ~Running() {
    daemon_.Stop("the test is over");
    if (thread_.joinable()) thread_.join();
  }

  const SmallWorker& worker() const { return worker_; }
  int times_between_steps() const { return between_steps_; }
  void Stop() { daemon_.Stop("enough"); }
  absl::Status Join() {
    thread_.join();
    return status_;
  }

 private:
  RankResources Resources() {
    RankResources resources = worker_.resources();
    resources.between_steps = [this] { ++between_steps_; };
    return resources;
  }

  SmallWorker worker_;
  std::atomic<int> between_steps_{0};
  WorkerDaemon daemon_;
  absl::Status status_;
  std::thread thread_;
};

inline SchedulerMessage Start(const JobSpec& job, const SmallWorker& worker) {
  SchedulerMessage message;
  *message.mutable_start() = Assign(job, worker);
  return message;
}

// What a scheduler says when it has stored what the rank said, up to this step.
inline SchedulerMessage StoredOf(const RankRef& ref, int64_t step, bool ended) {
  SchedulerMessage message;
  *message.mutable_stored()->mutable_ref() = ref;
  message.mutable_stored()->set_step(step);
  message.mutable_stored()->set_ready(true);
  message.mutable_stored()->set_ended(ended);
  return message;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_SERVICE_RUNNING_DAEMON_H_
