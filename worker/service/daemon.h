// The worker's life: connect to the scheduler, do what it says, and when it is
// lost, connect again. A rank of a job outlives the session: it trains on, what
// it has to say is kept (outbox.h), and the next scheduler takes it back or
// tells it to end. Without one it trains to its end, and its last words wait as
// long as the process lives: an idle worker has nothing better to do, and they
// are all that it holds by then. Texts end with their session, as the clients
// that waited for them are gone with the scheduler.
//
// The worker ends when it is told to, when the scheduler refuses it while it
// holds no rank, or when its device is of no use any more. One that holds a
// rank treats a scheduler that refuses it as an absent one: it may be another
// cluster's or of another version, and is no reason to lose what was trained.
#ifndef TROUPE_WORKER_SERVICE_DAEMON_H_
#define TROUPE_WORKER_SERVICE_DAEMON_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/base/steady_time.h"
#include "proto/cluster.pb.h"
#include "proto/come_back.h"
#include "worker/engine/train_loop.h"
#include "worker/service/copies_saver.h"
#include "worker/service/file_checker.h"
#include "worker/service/generation_runner.h"
#include "worker/service/job_reader.h"
#include "worker/service/link_measuring.h"
#include "worker/service/outbox.h"
#include "worker/service/rank_runner.h"
#include "worker/service/session.h"

namespace troupe {

struct WorkerDaemonOptions {
  std::string scheduler;          // HOST:PORT
  PeerTrust trust;                // how the two know each other
  WorkerDescription description;  // as it registers
  std::string address;            // where peers reach this worker
  // How it finds its machine, for each heartbeat; null: it does not say.
  std::function<MachineReading()> machine = nullptr;
  // What keeps ranks from running on this machine (doctor/fitness.h): said when
  // it registers, and asked before a rank begins. One that holds a rank does
  // not ask when it registers, for that may take seconds in which it is awaited
  // (proto/come_back.h), but when it is free again. Null: nothing.
  std::function<std::vector<std::string>()> unfit = nullptr;
  // How the device starts afresh after a rank or a text, while none that
  // `unfit` asks is in it (doctor/device_answers.h). Null: by itself.
  std::function<absl::Status()> start_afresh = nullptr;
  // Between two looks of one that has registered as unfit, which gets no rank,
  // or without a look: it registers anew where it finds something else.
  absl::Duration look_again = absl::Seconds(10);
  // Between two attempts to connect; doubles up to the second, and while a rank
  // is held only up to the third: a scheduler that is back waits for it.
  absl::Duration retry_first = absl::Milliseconds(100);
  absl::Duration retry_max = absl::Seconds(5);
  absl::Duration retry_held_max = kRetryHeldMax;
  // The same, where a rank is held and a scheduler has refused the worker; half
  // of it is drawn by lot.
  absl::Duration retry_refused_max = kRetryRefusedMax;
  // How long the scheduler has to say what becomes of a rank that is to be
  // saved before this worker leaves: a part of the 30 s that Kubernetes gives a
  // process to end.
  absl::Duration leaving_answer_max = absl::Seconds(10);
};

class WorkerDaemon {
 public:
  // Borrows what `resources` refers to.
  WorkerDaemon(const WorkerDaemonOptions& options,
               const RankResources& resources);
  ~WorkerDaemon();

  // Serves until Stop: OK. Or until the scheduler refuses this worker, which
  // holds no rank: AlreadyExists, FailedPrecondition, InvalidArgument,
  // PermissionDenied. Or until the device does not start afresh after a rank or
  // a text: that error. Call once.
  absl::Status Run();

  // Ends what runs, says goodbye, and makes Run return, within about a second;
  // but a job that has somewhere to be saved is saved first, be it from the
  // copies that this worker keeps, which may take as long as a step and a
  // checkpoint do; not where the scheduler, without which
  // nothing is saved, does not answer. Thread-safe; may be called before Run.
  void Stop(const std::string& reason);

 private:
  // The rank that runs here, or whose last words are not known to be stored.
  struct Held {
    RankRef ref;
    std::string fingerprint;
    std::string run_id;
    std::string cluster_id;  // whose scheduler gave it
    std::shared_ptr<Outbox> outbox;
  };

  absl::StatusOr<std::unique_ptr<Session>> Connect();
  // What the machine is, as it was said in the session that is open.
  enum class RegisteredAs { kFit, kUnfit, kUnknown };
  RegisteredAs AddUnfit(Register& registration) const;
  // Ends the session when that is found to be otherwise, or known at last to be
  // unfit, while the worker is free.
  void LookAgain(Session& session, SteadyNotification& over) const;
  // Serves one session to its end; says why it ended.
  absl::Status Serve(Session& session);
  // For the last words of a rank or a text, which has let go of the device by
  // then. Where that is of no use any more, the worker leaves with them. A rank
  // that did not begin has not used it, and the device may be why.
  absl::Status SendLast(const SendToScheduler& send, bool used_device,
                        WorkerMessage message);
  // `send` is the session's.
  void Handle(const SchedulerMessage& message, const SendToScheduler& send);
  void Begin(const Assignment& assignment, const SendToScheduler& send);
  void SaveKeptCopies(const SaveCopies& request, const SendToScheduler& send);
  // The scheduler has no use for the rank that is held.
  void Forget(const StopRank& stop);
  bool holds_rank() const {
    return held_.outbox != nullptr && !held_.outbox->done();
  }
  // Ends the rank that runs here, if any, and puts this one in its place.
  void Replace(std::unique_ptr<RankRunner> rank)
      ABSL_LOCKS_EXCLUDED(rank_mutex_);
  // The same of a text.
  void ReplaceText(std::unique_ptr<GenerationRunner> text)
      ABSL_LOCKS_EXCLUDED(rank_mutex_);
  // Whether a rank is held here, or a text is written.
  bool is_busy() const ABSL_LOCKS_EXCLUDED(rank_mutex_);
  Heartbeat Beat() const ABSL_LOCKS_EXCLUDED(rank_mutex_);
  // Ends the rank at the end of this worker.
  void GiveUp(const absl::Status& why);
  // Waits, but not past Stop; false: stopped.
  bool WaitToRetry(absl::Duration wait);
  bool stopped() const;
  // Tells the scheduler that this worker leaves, and waits until its rank has
  // been saved and has ended, and what copies it keeps then are given up; not
  // at all where there is nothing to save, not past leaving_answer_max where
  // the scheduler has not told the rank to stop, and not past the end of the
  // session.
  void SaveFirst(const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WorkerDaemonOptions options_;
  const RankResources resources_;
  bool was_registered_ = false;
  std::string cluster_id_;  // of the session that is open
  RegisteredAs registered_as_ = RegisteredAs::kFit;
  Held held_;  // the reader's
  // Whether it holds a rank, or is about to begin something; written by the
  // reader.
  std::atomic<bool> busy_{false};
  // Written by the reader, which alone may use these without the lock; null:
  // idle. Nothing else is locked meanwhile.
  mutable absl::Mutex rank_mutex_;
  std::unique_ptr<RankRunner> rank_;
  std::unique_ptr<GenerationRunner> generation_;
  std::unique_ptr<JobReader> job_reader_;
  FileChecker file_checker_;
  std::unique_ptr<LinkMeasuring> measuring_;
  std::unique_ptr<CopiesSaver> copies_saver_;  // borrows from rank_

  mutable absl::Mutex mutex_;
  SteadyCondition stops_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::string stop_reason_ ABSL_GUARDED_BY(mutex_);
  absl::Status device_lost_ ABSL_GUARDED_BY(mutex_);
  Session* session_ ABSL_GUARDED_BY(mutex_) = nullptr;  // while one is served
  int64_t sessions_ ABSL_GUARDED_BY(mutex_) = 0;        // so far
  // The rank that runs here, or has ended and keeps copies, where its job has
  // checkpoints.
  absl::optional<RankRef> savable_ ABSL_GUARDED_BY(mutex_);
  bool keeps_copies_ ABSL_GUARDED_BY(mutex_) = false;  // it has ended
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;      // it was told to stop
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_DAEMON_H_
