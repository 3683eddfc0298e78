// Compiles jobs beside the cluster: queued jobs whose turn has come
// (CompileJob), one after another on one thread, and what clients ask for
// before they get an answer on a few others. So a job that could start waits
// for no question, a quick question not for a slow one, and no submission for
// those who only ask; heartbeats, reports and other RPCs go on meanwhile.
//
// Nothing is compiled for nobody: planning ends when its client has given up or
// has no time left, when its job does not wait for it any more, when it takes
// longer than kPlanMax, and when the scheduler stops. It asks so between its
// parts. Time is the host's, which no step of the wall clock touches and no
// sleep of the machine counts in.
#ifndef TROUPE_SCHEDULER_SERVICE_PLANNING_H_
#define TROUPE_SCHEDULER_SERVICE_PLANNING_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "scheduler/cluster/compilation.h"
#include "scheduler/cluster/host.h"

namespace troupe {

// Somebody who waits for a plan.
struct Asker {
  absl::Duration patience = absl::InfiniteDuration();  // from now on
  std::function<bool()> has_given_up;  // thread-safe; empty: never
  bool submits = false;                // comes before those who only ask
};

class Planning final : public ActionSink {
 public:
  // With the outcome, or why there is none: RESOURCE_EXHAUSTED, too many wait;
  // UNAVAILABLE, the scheduler stops; DEADLINE_EXCEEDED; CANCELLED, the asker
  // has given up.
  using Done = std::function<void(absl::StatusOr<CompileOutcome>)>;

  // Borrows both.
  Planning(ClusterHost& host, const JobCompiler& compiler);
  ~Planning() override;

  // For a client. Calls `done` once: on a planning thread or, where it is not
  // compiled, before this returns or when planning stops.
  void Compile(Compilation compilation, Asker asker, Done done);

  // CompileJob; the other actions are not its business. There is at most one
  // for each queued job, whose number is bounded.
  void Carry(const Actions& actions) override;

  // Ends the compilations in progress and answers all that wait. From here on
  // nothing is compiled.
  void Stop();

  // Questions at once. How long one waits for its turn, its deadline says.
  static constexpr int kClientsMax = 64;
  // For questions; one of them is for submissions only.
  static constexpr int kQuestionThreads = 4;

 private:
  struct Task {
    std::shared_ptr<const Compilation> compilation;
    JobId job;  // 0: a client's
    Asker asker;
    absl::Time deadline = absl::InfiniteFuture();  // the asker's, by the host
    Done done;                                     // a client's
  };
  using Queue = std::deque<Task>;

  // Takes tasks of queued jobs, or of clients.
  void Loop(bool jobs);
  // Where one stands whose turn it is; null: nowhere.
  Queue* Due(bool jobs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const Task& task);
  // Why the task's planning is to end, since it began at `begun` (the host's
  // Now).
  absl::Status MayGoOnWith(const Task& task, absl::Time begun) const;
  bool stopping() const {
    absl::MutexLock lock(&mutex_);
    return stopping_;
  }

  ClusterHost& host_;
  const JobCompiler& compiler_;
  mutable absl::Mutex mutex_;  // after the host's, where both are held
  Queue jobs_ ABSL_GUARDED_BY(mutex_);
  Queue submissions_ ABSL_GUARDED_BY(mutex_);
  Queue plans_ ABSL_GUARDED_BY(mutex_);
  int clients_ ABSL_GUARDED_BY(mutex_) = 0;      // not answered yet
  int plans_begun_ ABSL_GUARDED_BY(mutex_) = 0;  // not ended yet
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // they start when all else is there
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_PLANNING_H_
