// Submissions that wait until workers have looked at a job's files
// (scheduler/cluster/file_checks.h). Answers come under the host's lock, and
// what follows one takes that lock again, so it runs on a thread of this class.
//
// Locks: the host's comes first, then this one's.
#ifndef TROUPE_SCHEDULER_SERVICE_FILE_CHECK_CALLS_H_
#define TROUPE_SCHEDULER_SERVICE_FILE_CHECK_CALLS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/job.pb.h"
#include "scheduler/cluster/host.h"

namespace troupe {

class FileCheckCalls final : public ActionSink {
 public:
  // With what workers found; UNAVAILABLE: the scheduler stops.
  using Then = std::function<void(const absl::Status&)>;

  // Borrows the host.
  explicit FileCheckCalls(ClusterHost& host);
  ~FileCheckCalls() override;

  // Calls `then` once: before this returns where nobody can be asked.
  void Check(const JobSpec& job, Then then);

  // FilesLookedAt; the other actions are not its business.
  void Carry(const Actions& actions) override;

  // Answers all that wait. From here on nothing is asked.
  void Stop();

 private:
  struct Answered {
    Then then;
    absl::Status status;
  };

  void Run();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopped_ || !answered_.empty();
  }

  ClusterHost& host_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<int64_t, Then> waiting_ ABSL_GUARDED_BY(mutex_);
  std::deque<Answered> answered_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_FILE_CHECK_CALLS_H_
