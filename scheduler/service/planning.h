// Compiles jobs beside the cluster: queued jobs whose turn has come
// (CompileJob) on a few threads, and what clients ask for before they get an
// answer on a few others, two of which only submissions have. So a job that
// could start waits for no question, and submissions do not wait for plan
// requests; heartbeats, reports and other RPCs go on meanwhile. A client has a
// share of the questions that may wait (client_share.h). Of those that wait, as
// of the queued jobs, the first is taken whose client has not its most under
// way already: what one client waits for long keeps no other client waiting.
//
// Nothing is compiled for nobody: planning ends when its client has given up or
// has no time left, when its job does not wait for it any more, when it takes
// longer than kPlanMax, and when the scheduler stops. It asks so between its
// parts. Long plans wait for each other before they are built (plan_budget.h).
// This does not count as planning, and takes nobody's place: another task
// begins meanwhile, on a thread more. Only of its own client it counts as under
// way. Time is the host's, which no step of the wall clock touches and no sleep
// of the machine counts in.
#ifndef TROUPE_SCHEDULER_SERVICE_PLANNING_H_
#define TROUPE_SCHEDULER_SERVICE_PLANNING_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/plan/plan_limits.h"
#include "scheduler/cluster/compilation.h"
#include "scheduler/cluster/host.h"
#include "scheduler/service/plan_budget.h"

namespace troupe {

// A caller that waits for a plan.
struct Asker {
  absl::Duration patience = absl::InfiniteDuration();  // from now on
  std::function<bool()> has_given_up;  // thread-safe; empty: never
  bool submits = false;                // comes before those that only ask
  std::string client;                  // its name; empty: has no share to keep
};

class Planning final : public ActionSink {
 public:
  // With the outcome, or why there is none: RESOURCE_EXHAUSTED, too many wait,
  // of all clients or of this one;
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

  // Questions that are not answered yet, of each kind: submissions do not count
  // with those that only ask. How long one waits for its turn, its deadline
  // says.
  static constexpr int kClientsMax = 64;
  // For questions, and how many of them those that only ask may have.
  static constexpr int kQuestionThreads = 6;
  static constexpr int kPlanThreads = 4;
  // Of one client, of each kind, under way at once; queued jobs count with the
  // client that submitted them.
  static constexpr int kOfClientAtOnce = 2;
  // For queued jobs.
  static constexpr int kJobThreads = 4;
  // Of jobs and of questions, that wait for room and leave their place to
  // others. More than these keep theirs.
  static constexpr int kAsideMax = 64;
  // Of each thread a plan that is short needs no room of the others'.
  static constexpr PlanBudget::Sizes kBudget = {
      .all = kInstructionsAtOnceMax -
             (kQuestionThreads + kJobThreads) * kComparedInstructionsMax,
      .one = kInstructionsMax,
      .small = kComparedInstructionsMax};

 private:
  struct Task {
    std::shared_ptr<const Compilation> compilation;
    JobId job;  // 0: a client's
    Asker asker;
    absl::Time deadline = absl::InfiniteFuture();  // the asker's, by the host
    Done done;                                     // a client's
  };
  // Of one kind, and those of its tasks that are not ended.
  struct Queue {
    std::deque<Task> waiting;
    std::map<std::string, int> of_client;  // waiting or under way
    std::map<std::string, int> begun_of_client;
    int all = 0;
    int begun = 0;  // and not aside; those that are back may be above the most
    int begun_max = 0;
    int aside = 0;  // wait for room
  };

  // Why the client may not have one more of this kind.
  absl::Status CheckShare(const Queue& queue, const Asker& asker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(Queue& queue, Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The next task of this kind that may begin now; nothing: there is none.
  absl::optional<size_t> Next(const Queue& queue) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes tasks of queued jobs, or of clients.
  void Loop(bool jobs);
  // Where one stands whose turn it is; null: nowhere.
  Queue* Due(bool jobs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Task Begin(Queue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(Queue& queue, const std::string& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Leaves its place while it waits for room; false: it keeps it.
  bool StepAside(Queue& queue) ABSL_LOCKS_EXCLUDED(mutex_);
  void StepBack(Queue& queue) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(const Task& task, Queue& queue);
  // Why the task's planning is to end, which began at `begun` (the host's
  // Now).
  absl::Status MayGoOnWith(const Task& task, absl::Time begun) const;
  bool stopping() const {
    absl::MutexLock lock(&mutex_);
    return stopping_;
  }

  ClusterHost& host_;
  const JobCompiler& compiler_;
  PlanBudget budget_{kBudget};
  mutable absl::Mutex mutex_;  // after the host's, where both are held
  Queue jobs_ ABSL_GUARDED_BY(mutex_) = {.begun_max = kJobThreads};
  Queue submissions_ ABSL_GUARDED_BY(mutex_) = {.begun_max = kQuestionThreads};
  Queue plans_ ABSL_GUARDED_BY(mutex_) = {.begun_max = kPlanThreads};
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Beyond the first: as many as were aside at once.
  int more_job_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  int more_question_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  // They start when all else is there.
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_PLANNING_H_
