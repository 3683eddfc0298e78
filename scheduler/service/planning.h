// Compiles jobs beside the cluster, one after another on a thread of its own: a
// queued job whose turn has come (CompileJob), and what clients ask for before
// they get an answer. Meanwhile heartbeats, reports and other RPCs go on.
#ifndef TROUPE_SCHEDULER_SERVICE_PLANNING_H_
#define TROUPE_SCHEDULER_SERVICE_PLANNING_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/cluster/compilation.h"
#include "scheduler/cluster/host.h"

namespace troupe {

class Planning final : public ActionSink {
 public:
  // With the outcome, or why there is none: RESOURCE_EXHAUSTED, too many wait;
  // UNAVAILABLE, the scheduler stops.
  using Done = std::function<void(absl::StatusOr<CompileOutcome>)>;

  // Borrows both.
  Planning(ClusterHost& host, const JobCompiler& compiler);
  ~Planning() override;

  // For a client. Calls `done` once: on the planning thread or, where it is
  // not compiled, before this returns or when planning stops.
  void Compile(Compilation compilation, Done done);

  // CompileJob; the other actions are not its business. There is at most one
  // for each queued job, whose number is bounded.
  void Carry(const Actions& actions) override;

  // Answers all that wait, after the compilation in progress. From here on
  // nothing is compiled.
  void Stop();

  static constexpr size_t kClientsMax = 64;

 private:
  struct Task {
    std::shared_ptr<const Compilation> compilation;
    JobId job;  // 0: a client's
    Done done;  // a client's
  };
  void Loop();
  void Run(const Task& task);

  ClusterHost& host_;
  const JobCompiler& compiler_;
  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  size_t clients_ ABSL_GUARDED_BY(mutex_) = 0;  // of the tasks
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_PLANNING_H_
