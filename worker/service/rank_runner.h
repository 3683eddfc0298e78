// One Assignment from start to end: runs a TrainLoop on a thread of its own,
// joins its peers through the scheduler's store, and turns what the loop
// reports into messages. The last one is RankEnded, sent when all memory of the
// job is free again.
//
//   RankRunner runner(assignment, options);
//   runner.OnMessage(message);     // store values, commits, stops
//   ...                            // its destructor aborts and waits
#ifndef TROUPE_WORKER_SERVICE_RANK_RUNNER_H_
#define TROUPE_WORKER_SERVICE_RANK_RUNNER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/steady_time.h"
#include "proto/plan/sums.h"
#include "proto/worker.pb.h"
#include "worker/collective/join_abort.h"
#include "worker/engine/rank_listener.h"
#include "worker/engine/train_loop.h"
#include "worker/metrics/rank_metrics.h"
#include "worker/service/scheduler_store.h"

namespace troupe {

struct RankRunnerOptions {
  const RankResources& resources;
  SendToScheduler send;
  std::string address;  // where peers reach this worker
  // What keeps a rank from running on this machine (doctor/fitness.h); asked by
  // the rank's thread before it begins. Null: nothing.
  std::function<std::vector<std::string>()> unfit = nullptr;
  // Called by the rank's thread when it may begin, before it uses the device.
  // Null: nobody asks.
  std::function<void()> begins = nullptr;
  // How long a rank that was asked to stop, without a checkpoint, may go on to
  // the step after which all do: the next one, or on a GPU the third. Then it
  // is aborted, and loses only work that it was not asked to keep.
  absl::Duration stop_grace = absl::Seconds(1);
  SavePauses save_pauses;  // worker/engine/checkpoint_saver.h
};

// OnMessage, Abort and Progress from any thread. The loop calls from two: its
// own, and that of its checkpoint writer, whose calls touch nothing but what
// mutex_ guards and `send`, which is thread-safe.
class RankRunner final : private RankListener {
 public:
  // `kept`: what an earlier attempt left.
  RankRunner(const Assignment& assignment, const RankRunnerOptions& options,
             KeptMemory kept = {});
  ~RankRunner() override;

  // A StopRank, StoreValue, CheckpointCommit or CheckpointDone. Those of
  // another job or attempt are dropped. Never blocks.
  void OnMessage(const SchedulerMessage& message);

  void Abort(const absl::Status& why);

  // Where the rank is now.
  RankProgress Progress() const;
  // As it says in RankReady; 0: it is not ready.
  int64_t first_step() const { return first_step_; }
  int64_t steps_done() const { return loop_.steps_done(); }

  // Whether RankEnded has been sent (or could not be).
  bool ended() const { return ended_.HasBeenNotified(); }

  // What this attempt leaves to the next, as RankEnded said. REQUIRES: ended;
  // not during OnMessage or TakeKept.
  std::vector<KeptCopy> Kept() { return loop_.kept().copies.Whole(); }
  // Leaves it to nobody. REQUIRES: as above.
  void DropKept() { loop_.kept() = KeptMemory(); }
  // The same, to the next, and as it is here. Both wait for its end: REQUIRE
  // that it is at its very end.
  KeptMemory TakeKept();
  const KeptMemory& kept();

 private:
  void Run();
  // Whether it may begin here: its paths and the machine.
  absl::Status MayBegin() const;
  void Stop(const StopRank& stop);
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      const Plan& plan, int rank);
  absl::Status OpenMetrics(int64_t first_step);
  // What the job's user should hear of, to the log as well.
  void SendNotice(const std::string& text) const;
  void LogSample(const StepRecord& record) const;
  void SendEnded(const absl::Status& status);
  // Whether it ended so because it was told to.
  bool WasTold(const absl::Status& status);
  bool IsOurs(const RankRef& ref) const;

  absl::Status OnWarning(const std::string& warning) override;
  void OnNotice(const std::string& notice) override { SendNotice(notice); }
  void OnResumed(const std::string& checkpoint) override;
  absl::Status OnReady(int64_t first_step) override;
  absl::Status OnStep(const StepRecord& record, absl::Span<const double> sums,
                      const RankTimeline* timeline) override;
  absl::Status OnShardWritten(const WrittenShard& shard) override;
  absl::Status OnUnwritten(int64_t step, const std::string& error) override;
  absl::StatusOr<absl::optional<std::vector<ShardRecord>>> AwaitShards(
      int64_t step) override;
  absl::Status OnCommitted(const CheckpointRecord& checkpoint) override;
  absl::StatusOr<CheckpointEnd> AwaitEnd(int64_t step) override;
  int64_t WriteNumber() const;
  void OnCommit(const CheckpointCommit& commit);
  void OnDone(const CheckpointDone& done);

  const RankRef ref_;
  const Sums sums_;                              // of the plan
  const absl::Status paths_;                     // where they lead elsewhere
  const std::vector<std::string> worker_names_;  // by rank
  const RankRunnerOptions options_;
  SchedulerStore store_;
  JoinAbort join_abort_;
  TrainLoop loop_;
  const bool hands_over_;  // a recovery in which copies move
  std::atomic<int64_t> first_step_{0};
  // The train loop's thread has these.
  std::vector<std::string> warnings_;
  const bool steps_of_others_;      // StepReport.of_others
  const MetricsSpec metrics_spec_;  // what this rank writes
  RankMetricsOptions metrics_options_;
  std::unique_ptr<RankMetrics> metrics_;  // from OnReady on; or null
  std::string resumed_from_;              // OnResumed

  mutable absl::Mutex mutex_;
  // The write of a checkpoint that is under way, or the next one.
  struct CheckpointWrite {
    int64_t number = 1;
    // Of rank 0, when all shards are there: their records, until it takes them.
    bool asked_to_commit = false;
    absl::optional<std::vector<ShardRecord>> shards;
    absl::optional<std::string> given_up;  // why
  };
  CheckpointWrite write_ ABSL_GUARDED_BY(mutex_);
  int64_t committed_ ABSL_GUARDED_BY(mutex_) = -1;  // the last step that is
  int64_t stored_ ABSL_GUARDED_BY(mutex_) = -1;  // and that the scheduler wrote
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);

  SteadyNotification ended_;
  std::thread stopper_;  // aborts a stop that takes too long
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_RANK_RUNNER_H_
