// A thousand workers in one process: each a real Workers.Session stream over a
// connection of its own, which registers, keeps its lease, takes a rank, meets
// its peers through the scheduler's store, reports steps and lets go when it is
// told to. Only the training is left out.
//
// At its start a rank does what one in a Gloo group of all ranks does
// (worker/collective/gloo/introduce.h), with values of the same sizes.
#ifndef TROUPE_TESTS_BENCH_SCHEDULER_SCALE_FLEET_H_
#define TROUPE_TESTS_BENCH_SCHEDULER_SCALE_FLEET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace troupe {

class FleetWorker;

struct FleetOptions {
  std::string scheduler;  // HOST:PORT
  int workers = 0;
  int workers_per_host = 8;
};

class Fleet {
 public:
  // How many workers have come how far, and when the last of them did.
  struct Progress {
    int registered = 0;
    int assigned = 0;
    int ready = 0;
    int ended = 0;
    int gone = 0;  // streams that are over
    int64_t assigned_bytes = 0;
    // Of keys and values that a rank set or was sent to join: of the first, and
    // the most of any other.
    int64_t store_bytes_first = 0;
    int64_t store_bytes_other = 0;
    absl::Duration heartbeat = absl::ZeroDuration();  // as was asked for
    absl::Time last_assigned;
    absl::Time last_ready;
  };

  // Opens the streams; heartbeats begin when their workers are registered.
  explicit Fleet(const FleetOptions& options);
  // Says goodbye and waits for the streams to end.
  ~Fleet();

  // Waits until `done` says so of the progress. False: not within the time.
  template <typename Done>
  bool Await(const Done& done, absl::Duration time) {
    absl::MutexLock lock(&mutex_);
    const auto is_done = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return done(progress_);
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&is_done), time);
  }
  Progress progress() const;

  // Every worker reports this step of its rank, with a timeline where the step
  // is to be traced.
  void ReportStep(int64_t step);

  // From a question to the store to its answer, on the stream of one worker,
  // behind what that has sent before. Infinite: not within ten seconds.
  // REQUIRES: all are ready.
  absl::Duration StoreRoundTrip(int worker);

 private:
  friend class FleetWorker;
  template <typename Change>
  void Count(const Change& change) {
    absl::MutexLock lock(&mutex_);
    change(progress_);
  }
  void Heartbeats();

  mutable absl::Mutex mutex_;
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<FleetWorker>> workers_;
  std::thread heartbeats_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_SCHEDULER_SCALE_FLEET_H_
