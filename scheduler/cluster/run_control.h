// Carries jobs from their start to their end: hands out the ranks, gathers what
// they report, and stops all of them when one fails. A job fails at its first
// failure, and its other ranks are told to stop; it has ended when all its
// ranks have let go of it, or are lost. Messages of an earlier attempt, or of a
// worker that does not have the rank, are dropped.
//
// Ranks outlive the scheduler. One that is started again knows from its store
// who had which rank, and waits for them (run_adopt.cc): each is seated again
// as it comes back, says again what is not known to be stored, and when all are
// there the job goes on. A worker that comes without its rank, or not within
// Limits::adopt_max, is lost with it. A job that was still in its start has
// nothing to lose, and begins anew. What a rank reports is acknowledged once it
// is on the disk (Stored), and heard twice it counts once. Of a commit all hear
// at once, even where the disk is full; what it makes obsolete stays then. A
// commit that is reported again after a restart waits for the steps before it.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_CONTROL_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_CONTROL_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/choose_recovery.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/late_watch.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/policy/may_recover.h"
#include "scheduler/cluster/policy/who_gives_way.h"
#include "scheduler/cluster/worker_blame.h"
#include "scheduler/cluster/worker_preference.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// A worker to be treated as lost, and why.
struct StuckWorker {
  WorkerId worker;
  std::string reason;
};

class RunControl {
 public:
  // Borrows all but the limits.
  RunControl(const Limits& limits, const JobCompiler& compiler,
             WorkerTable& workers, JobTable& jobs)
      : limits_(limits),
        compiler_(compiler),
        workers_(workers),
        jobs_(jobs),
        late_(limits, jobs),
        blame_(limits, workers, jobs) {}

  // Gives rank r to workers[r], who hear of it when it is stored that they
  // have it. REQUIRES: the job is queued, they are idle.
  void Start(Job& job, const CompiledJob& compiled,
             const std::vector<const Worker*>& workers, absl::Time now,
             Actions& actions);

  // Whether the store was asked this for the run, and nothing since.
  static bool IsOpen(const Job& job, const AwaitStored& asked);
  // Whether the job's start is not known to be stored yet.
  static bool AwaitsStore(const Job& job);
  // It is stored. REQUIRES: AwaitsStore.
  void HandOut(Job& job, absl::Time now, Actions& actions);
  // It is not, and nobody has heard of it: the job is queued again, and its
  // workers are free; one that recovers keeps them, and asks again. `why` is
  // what it waits for. REQUIRES: AwaitsStore.
  void NotStored(Job& job, const std::string& why, absl::Time now,
                 Actions& actions);

  // Jobs that wait for workers to go on with take those that are idle.
  void RecoverWaiting(absl::Time now, Actions& actions);
  // No others are soon to come: those with `elastic` give up the plan that they
  // had for one that needs fewer. True: some job is queued now.
  bool NarrowWaiting(absl::Time now, Actions& actions);
  // Of jobs that wait for workers which others hold, one is saved, if need be,
  // and gives its own away. `next` in the queue may be helped, too. True: it is
  // queued now.
  bool GiveWay(const absl::optional<NextInQueue>& next, absl::Time now,
               Actions& actions);
  // The job is saved at the end of its step, and goes on with other workers: it
  // is queued. REQUIRES: MayMove, and it is not being stopped.
  void SaveAndMove(Job& job, const std::string& why, absl::Time now,
                   Actions& actions);
  // The job fails with its `defect`. REQUIRES: it has a run and has not ended.
  void FailForDefect(Job& job, absl::Time now, Actions& actions);
  // Jobs that have waited long for workers other than those where their starts
  // failed try it there once more, where that gives them all that they need.
  void TryAgainWhereStartsFailed(absl::Time now, Actions& actions);
  // The job takes these workers again, on which its start failed.
  void AvoidNoMore(Job& job, const FailedStarts& avoided, absl::Time now,
                   Actions& actions);
  // Jobs that keep bad machines, since a disk did not take what only these
  // have, try to save that once more where it is time.
  void SaveAgain(absl::Time now, Actions& actions);
  // Jobs are saved and end, or are queued for the next scheduler. None goes on
  // with other workers from here on.
  void Drain(const std::string& why, absl::Time now, Actions& actions);
  // An answer to SaveCopies.
  void HandleCopiesSaved(WorkerId from, const CopiesSaved& saved,
                         absl::Time now, Actions& actions);
  // Whether its copies are a checkpoint, and that is not known to be stored.
  static bool AwaitsCopiesStored(const Job& job);
  // It is: the job moves. Or not, and it asks again. REQUIRES:
  // AwaitsCopiesStored.
  void CopiesStored(Job& job, const absl::Status& stored, absl::Time now,
                    Actions& actions);
  // The job ran when the scheduler before this one was lost: it has its run
  // again, and waits for its workers. `handed` is what the attempt's ranks got,
  // where that is known: without it a job that recovered is queued.
  // REQUIRES: it is neither queued nor ended, without a run.
  void Resume(Job& job, std::shared_ptr<const troupe::HandOut> handed,
              absl::Time now, Actions& actions);
  // A worker has registered, and holds this rank (without `ref`: none): it is
  // seated there, or told to give it up. Where it was awaited with another one,
  // that is lost. REQUIRES: it is idle.
  void CameBack(const Worker& worker, const HeldRank& held, absl::Time now,
                Actions& actions);

  // One that has a RankRef.
  void HandleMessage(WorkerId from, const WorkerMessage& message,
                     absl::Time now, Actions& actions);

  // The worker is gone; `how` is "was lost" or "left". REQUIRES: it has a seat
  // in the job's run.
  void WorkerGone(JobId job, WorkerId worker, const std::string& how,
                  const std::string& reason, absl::Time now, Actions& actions);

  // REQUIRES: the job has a run. Stops it, if it is not being stopped, or only
  // with a checkpoint.
  void Cancel(Job& job, absl::Time now, Actions& actions);
  // The same, with a checkpoint of the step in progress. A job that has not
  // begun has nothing to save. `why` opens the job's reason.
  void SaveAndCancel(Job& job, const std::string& why, absl::Time now,
                     Actions& actions);

  // Time in which no rank could be heard: no job's wait counts it.
  void Forgive(absl::Duration time, absl::Time now);

  // The jobs that have waited for the store for as long as a start may take:
  // AwaitsStore or AwaitsCopiesStored.
  std::vector<JobId> Unstored(absl::Time now) const;

  // Fails jobs that do not start or hang; the workers that do not let go.
  std::vector<StuckWorker> Tick(absl::Time now, Actions& actions);

 private:
  // Carries out what is due of the edge that the job took (run_effects.cc):
  // when the row with its new phase is stored, for it may be asked whether it
  // is. `why` is told to those that are stopped or forget their ranks.
  void Perform(Job& job, const std::string& why, Actions& actions);
  void HandOutRanks(Job& job, Actions& actions);
  void StopRanks(const Job& job, const std::string& why, bool peers_gone,
                 Actions& actions);
  void ForgetRanks(Job& job, const std::string& why, Actions& actions);
  // Those that are there.
  void FreeWorkers(Job& job, Actions& actions);
  void SaveCopiesOfAll(Job& job, Actions& actions);
  // The next attempt begins: that is to be stored. REQUIRES: the job has no
  // run.
  void BeginRun(Job& job, PhaseEvent event, const Plan& outline,
                absl::Time now);
  void BeginAgain(Job& job, absl::Time now, Actions& actions);
  // Why it does not, all the same; empty: it does.
  std::string WhyNotAgain(const Job& job) const;
  // No worker runs a rank of it any more, or none is to go on.
  void LetGo(Job& job);
  // All ranks have let go: on as soon as every place has a worker.
  void AwaitPlaces(Job& job, absl::Time now, Actions& actions);
  void AwaitPlacesNow(Job& job, absl::Time now, Actions& actions);
  // REQUIRES phase::LetGo.
  void WaitInPlaces(Job& job, absl::Time now);
  void GoOnUnmoved(Job& job, absl::Time now, Actions& actions);
  void TakePlaces(Job& job, absl::Time now, Actions& actions);
  // What a job that waits for a place to be taken does without; or empty.
  std::string OrGoesOnWith(const Job& job, absl::Time now) const;
  // Of a job that is about to fail: a user does not want it to go on.
  void StartNoMore(Job& job, Actions& actions);
  void TryAgainWhereItsStartFailed(Job& job, absl::Time now, Actions& actions);
  void StartAgain(Job& job, const std::vector<const Worker*>& workers,
                  absl::Time now, Actions& actions);
  // Frees the workers whose machine failed, unless others lack what they keep.
  void LeaveBadMachines(Job& job, Actions& actions);
  // The rank has ended, and its worker is not needed for the job any more, nor
  // is what it keeps.
  void Free(Job& job, int rank, Actions& actions);
  // Frees the workers of these ranks, with what they keep.
  void LetLeave(Job& job, const std::set<int>& ranks, Actions& actions);
  // Whether there are as many workers as it needs at least.
  bool MayNarrow(const Job& job) const;
  // For the plan that it gives up there are too few workers: what copies there
  // are become a checkpoint, from which a narrower one goes on.
  void Narrow(Job& job, absl::Time now, Actions& actions);
  void SaveCopiesOf(Job& job, const Recovery& newest, absl::Time now,
                    Actions& actions);
  void SendSaveCopies(Job& job, int rank, SaveCopies request, Actions& actions);
  void CommitCopiesOf(Job& job, Actions& actions);
  // They are a checkpoint, in time or later.
  void CopiesCommitted(Job& job, const CopiesSaved& saved, absl::Time now,
                       Actions& actions);
  // It moves when it is stored that its newest checkpoint is there.
  void StoreCheckpoint(Job& job, absl::Time now, Actions& actions);
  // Whether nothing is lost where it gives up its workers while it waits for
  // others: its copies can be saved, or there is nothing to save.
  bool LosesNothing(const Job& job, absl::Time now) const;
  WaitingJob AsWaiting(const Job& job, absl::Time now) const;
  // Whether copies are not to be saved yet, for that failed not long ago.
  bool IsPaused(const Job& job, absl::Time now) const;
  // A disk did not take what was to be saved: not again at once.
  static void PauseMoves(Job& job, absl::Time now);
  // Copies are not saved: a disk does not take them now, a worker has not
  // answered in time, or they cannot be saved later either.
  enum class Unsaved { kDisk, kLate, kForGood };
  void GiveUpCopies(Job& job, Unsaved how, const std::string& why,
                    absl::Time now, Actions& actions);
  // Nobody takes a place while these ranks, whose machines failed, keep what a
  // disk has not taken yet.
  void AwaitDisk(Job& job, const std::set<int>& ranks, Actions& actions);
  // What there is of the job's state is saved, and it moves; it may be in the
  // middle of a start or a recovery. REQUIRES: MayMove.
  void MoveAsItIs(Job& job, const std::string& why, absl::Time now,
                  Actions& actions);
  // Whether it moves as soon as its ranks have let go, though it could go on.
  bool MovesOn(const Job& job) const;
  // All ranks have let go: the job is queued, for another plan, or cancelled.
  void Move(Job& job, const std::string& why, absl::Time now, Actions& actions);
  // NotStored, of a job that has not begun.
  void Withdraw(Job& job, const std::string& why, absl::Time now,
                Actions& actions);
  void SayRecovered(Job& job, absl::Time now, Actions& actions);
  // Its run ends, and it is to go on with another one; until that goes on.
  static void StandStill(Job& job);
  void GoOn(Job& job, absl::Time now, Actions& actions);
  void SayMoved(Job& job, absl::Time now, Actions& actions);
  static void CountRestart(Job& job);
  void AddGathered(Job& job, GatheredStep step, Actions& actions);
  // Ranks that do not hold the same of it fail the attempt.
  void CheckAgreement(Job& job, const GatheredStep& step, absl::Time now,
                      Actions& actions);
  // All ranks have let go, and these are all the reports that there will be:
  // those of steps which some rank never reported are compared, too. Returns
  // who differs; empty: nobody.
  std::string CheckOpenSteps(Job& job, absl::Time now, Actions& actions);
  // What comes of the step is not used, nor are the workers that are known to
  // be wrong. Returns who differs, and in what.
  std::string Distrust(Job& job, int64_t in_step,
                       const ScalarDifference& difference, Actions& actions);
  // Those that the job has behind it where it goes on after `resumes_at`, or,
  // where that is negative, from its newest checkpoint.
  void CloseSteps(Job& job, Run& run, int64_t resumes_at, Actions& actions);
  // Whether ranks may report again steps that this scheduler has not heard from
  // them, since they are there or may come back.
  bool AwaitsSteps(const Job& job, absl::Time now) const;
  // Those of Run::early_commits up to this step become the job's checkpoints.
  // Steps before them do not run again: they are stored as they are reported.
  void StoreEarlyCommits(Job& job, int64_t through, absl::Time now,
                         Actions& actions);
  void StoreEarlyCommits(Job& job, absl::Time now, Actions& actions);
  // Fills the run's seats.
  void Seat(Job& job, const std::vector<const Worker*>& workers,
            absl::Time now);
  std::shared_ptr<const troupe::HandOut> MakeHandOut(
      const Job& job, const CompiledJob& compiled) const;
  // Asks for it to be stored that the attempt begins, with what the one after
  // it needs where there may be one.
  static void StoreStart(Job& job, Actions& actions);
  // An answer to what it was asked before is none to this.
  static void AskTheStore(Job& job, Actions& actions);
  void Ready(Job& job, const RankReady& ready, absl::Time now,
             Actions& actions);
  // The last rank is ready, and said this.
  void TrainIfAllReady(Job& job, absl::Time now, Actions& actions);
  void Step(Job& job, const StepReport& report, absl::Time now,
            Actions& actions);
  void Shard(Job& job, const CheckpointShard& shard, absl::Time now,
             Actions& actions);
  void Unwritten(Job& job, const CheckpointUnwritten& unwritten, absl::Time now,
                 Actions& actions);
  // What follows from an answer.
  void Gathered(Job& job, GatheredCheckpoint gathered, absl::Time now,
                Actions& actions);
  // All ranks have stopped writing it, and hear that.
  void GiveUpCheckpoint(Job& job,
                        const std::vector<CheckpointUnwritten>& unwritten,
                        absl::Time now, Actions& actions);
  void Committed(Job& job, const CheckpointCommitted& committed, absl::Time now,
                 Actions& actions);
  // Becomes an event of the job, as far as an attempt may have some.
  void Notice(Job& job, const RankNotice& notice, absl::Time now,
              Actions& actions);
  void Ended(Job& job, const RankEnded& ended, absl::Time now,
             Actions& actions);
  void Leave(WorkerId from, const Leaving& leaving, absl::Time now,
             Actions& actions);
  void LeaveRank(Job& job, int rank, const std::string& why, absl::Time now,
                 Actions& actions);
  void LeaveKept(Job& job, int rank, const std::string& why, absl::Time now,
                 Actions& actions);
  void Set(Job& job, const StoreSet& set, absl::Time now, Actions& actions);
  void Get(Job& job, const StoreGet& get, absl::Time now, Actions& actions);

  // Why the rank that the worker holds is not its own any more; empty: it is
  // awaited with it.
  std::string WhyNotAdopted(const Worker& worker, const HeldRank& held) const;
  void Adopt(Job& job, const Worker& worker, const HeldRank& held,
             absl::Time now, Actions& actions);
  // The seat of a rank as it was when its scheduler was lost.
  void SeatAdopted(Job& job, const Worker& worker, const HeldRank& held,
                   absl::Time now);
  // Drops copies of attempts before this one, where this one has run.
  void DropOlderCopies(Job& job, Actions& actions) const;
  // The ranks that are awaited in vain, all of them or this worker's. `how` is
  // what their workers did, `why` the cause where it is known, else empty; it
  // is asked only where there are such ranks.
  void GiveUpAwaited(Job& job, const std::string& worker,
                     const std::string& how,
                     absl::FunctionRef<std::string()> why, absl::Time now,
                     Actions& actions);
  void CheckAwaited(Job& job, absl::Time now, Actions& actions);
  // Whether a rank ended because a scheduler died in the middle of its job's
  // start: others were told to give theirs up, and that is not stored.
  static bool StartWasCut(const Job& job, const RankEnded& ended);
  // REQUIRES: the job is in a start from before the scheduler's own.
  void BeginAnew(Job& job, const std::string& why, absl::Time now,
                 Actions& actions);
  void SayAwaited(Job& job, Actions& actions);
  // No worker is awaited any more.
  void EndAdoption(Job& job, absl::Time now, Actions& actions);
  // The job was to be cancelled, and is not being stopped: it is now.
  void StopAsMeant(Job& job, absl::Time now, Actions& actions);
  // Tells ranks what is stored of their reports, now and then.
  void SayStored(Job& job, absl::Time now, Actions& actions);
  // The checkpoint from which an attempt begins; empty: none.
  static std::string ResumeOf(const Job& job);
  void SayEnded(Job& job, const RankEnded& ended, Actions& actions);
  // Takes the run from the job, whose workers are free by then.
  void BackToQueue(Job& job, PhaseEvent event, const std::string& why,
                   absl::Time now, Actions& actions);

  // The job whose run has this worker in this rank, or null.
  Job* Seated(WorkerId worker, const RankRef& ref);
  // Of the slowest machine of the run.
  absl::optional<MachinePace> PaceOf(const Run& run) const;
  void Fail(Job& job, Blame blame, const std::string& said, absl::Time now,
            Actions& actions);
  // REQUIRES that it is not being stopped.
  void Stop(Job& job, phase::Stopped stopped, const std::string& reason,
            absl::Time now, Actions& actions);
  // The ranks hear another reason. REQUIRES that it is being stopped.
  void StopAgain(Job& job, const std::string& reason, bool peers_gone,
                 absl::Time now, Actions& actions);
  // It goes on after this, if it may, or comes to its end.
  void SayStopped(Job& job, const std::string& reason, absl::Time now,
                  Actions& actions);
  void FinishIfLetGo(Job& job, absl::Time now, Actions& actions);
  // Of a job that was to be saved and has let go.
  void CheckSaved(Job& job, absl::Time now, Actions& actions);
  // Whether its start, which failed for a cause of its workers, is tried again
  // on others.
  bool MayStartElsewhere(const Job& job) const;
  // Whether the job starts once more when its ranks have let go, though it does
  // not recover: it can still be cancelled.
  bool StartsOnceMore(const Job& job) const;
  void StartElsewhere(Job& job, absl::Time now, Actions& actions);
  void CheckStart(Job& job, absl::Time now, Actions& actions);
  void FailForHang(Job& job, absl::Time now, Actions& actions);
  void CheckTime(Job& job, absl::Time now, Actions& actions,
                 std::vector<StuckWorker>& stuck);

  const Limits limits_;
  bool draining_ = false;
  const JobCompiler& compiler_;
  WorkerTable& workers_;
  JobTable& jobs_;
  LateWatch late_;
  WorkerBlame blame_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_CONTROL_H_
