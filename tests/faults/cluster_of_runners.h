// A job on workers with slow disks, without sockets: the scheduler's state
// machine, and the rank runners of the workers on threads of their own. Time is
// what the disks take: it passes while they write, at a given rate, and with it
// come heartbeats and ticks. Steps take none. It passes by turns
// (turns.h), so that no deadline ends because the machine is busy.
//
//   ClusterOfRunners cluster({.workers = 2, .bytes_per_second = 1e6});
//   const JobStatus status = cluster.Run(job);
#ifndef TROUPE_TESTS_FAULTS_CLUSTER_OF_RUNNERS_H_
#define TROUPE_TESTS_FAULTS_CLUSTER_OF_RUNNERS_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "scheduler/cluster/cluster.h"
#include "scheduler/service/plan_compiler.h"
#include "tests/faults/turns.h"
#include "worker/service/rank_runner.h"

namespace troupe {

class ClusterOfRunners {
 public:
  using Event = std::function<void(Cluster&, absl::Time now, Actions&)>;

  struct Options {
    int workers = 1;
    double bytes_per_second = 1e6;
    Limits limits;
    // An event of each second, in which the cluster may be asked for something;
    // may be empty.
    std::function<void(Cluster&, JobId, absl::Time now, Actions&)> each_second;
  };
  explicit ClusterOfRunners(const Options& options);
  ~ClusterOfRunners();

  // Submits the job, and returns what became of it when its ranks have let go.
  // Call once.
  JobStatus Run(const JobSpec& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // What the scheduler thinks of its workers, by name.
  std::vector<WorkerStatus> Workers() const ABSL_LOCKS_EXCLUDED(mutex_);
  // How long it has run, in its own time.
  absl::Duration elapsed() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Worker;

  void Apply(const Event& event) ABSL_LOCKS_EXCLUDED(mutex_);
  // Carries out what the cluster asked for, in order.
  void Deliver() ABSL_LOCKS_EXCLUDED(delivery_, mutex_);
  void Tell(WorkerId worker, const SchedulerMessage& message);
  // By the thread whose turn it is.
  void Pass(absl::Duration time);
  void Heartbeats();

  const Options options_;
  const PlanCompiler compiler_;
  Turns turns_;
  std::vector<std::unique_ptr<Worker>> workers_;  // worker i has id i + 1

  absl::Duration since_second_;  // of the thread whose turn it is
  absl::Mutex delivery_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  Cluster cluster_ ABSL_GUARDED_BY(mutex_);
  JobId job_ ABSL_GUARDED_BY(mutex_);
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1'000'000);
  std::deque<Action> outbox_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_CLUSTER_OF_RUNNERS_H_
