// Those that ask: a watcher of one job, and clients that call each RPC in turn
// and note how long the answer took.
#ifndef TROUPE_TESTS_BENCH_SCHEDULER_SCALE_CLIENTS_H_
#define TROUPE_TESTS_BENCH_SCHEDULER_SCALE_CLIENTS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "tests/bench/scheduler_scale/latencies.h"

namespace troupe {

// Connects, with minutes for each call: a slow scheduler is to be measured.
std::unique_ptr<Client> ConnectTo(const std::string& scheduler);

// Follows a job to its end on a thread of its own.
class JobWatcher {
 public:
  JobWatcher(const std::string& scheduler, int64_t job);
  ~JobWatcher();  // waits for the job's end

  // False: not within the time.
  bool AwaitState(JobState state, absl::Duration time);
  bool AwaitStep(int64_t step, absl::Duration time);
  // When this step's record came. REQUIRES: it has come.
  absl::Time SeenAt(int64_t step) const;
  int64_t steps_seen() const;

 private:
  void Watch(const std::string& scheduler, int64_t job);

  mutable absl::Mutex mutex_;
  JobState state_ ABSL_GUARDED_BY(mutex_) = JOB_STATE_UNSPECIFIED;
  std::map<int64_t, absl::Time> seen_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Calls ListJobs, ListWorkers, DescribeJob (where there is one) and
// `other` again and again, with a pause between, until its end of life.
class Prober {
 public:
  struct Options {
    std::string scheduler;
    std::string when;  // goes before the RPC's name: "idle"
    int64_t job = 0;
    std::function<void()> other;
  };
  Prober(const Options& options, Latencies& latencies);
  ~Prober();

 private:
  void Probe(const Options& options, Latencies& latencies);

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_SCHEDULER_SCALE_CLIENTS_H_
