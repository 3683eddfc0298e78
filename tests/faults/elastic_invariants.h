// What must be true of jobs with `elastic`, whatever happens to the cluster:
//
// - a run never has fewer ranks than the job asks for at least and fits on, nor
//   more than it asks for, and its plan is the one that the compiler made for
//   that number;
// - a job that waits gives its plan up only where there are workers for
//   another, and does not go on waiting where there are;
// - what becomes a checkpoint are the newest copies that are left, and a job
//   that waited with copies goes on from no earlier step, however many ranks it
//   has then;
// - it keeps them until the store has said that it knows of a checkpoint that
//   is as new, unless it may not wait, or the worker that has them leaves.
//
// That a job which was well is saved before it goes on with more is seen by
// RecoveryInvariants, as for all that move.
#ifndef TROUPE_TESTS_FAULTS_ELASTIC_INVARIANTS_H_
#define TROUPE_TESTS_FAULTS_ELASTIC_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "scheduler/cluster/cluster.h"
#include "tests/faults/recovery_invariants.h"
#include "tests/faults/simulated_attempt.h"
#include "tests/faults/simulated_store.h"
#include "tests/faults/simulated_worker.h"
#include "tests/scheduler/cluster/fake_compiler.h"

namespace troupe {

class ElasticInvariants {
 public:
  // Borrows all.
  ElasticInvariants(const FakeCompiler& compiler,
                    const SimulatedAttempts& attempts,
                    const SimulatedStore& store,
                    const std::map<WorkerId, SimulatedWorker>& workers)
      : compiler_(compiler),
        attempts_(attempts),
        store_(store),
        workers_(workers) {}

  // Before the action is carried out.
  void OnAction(const Action& action, const Cluster& cluster);
  // After every event.
  void Check(const Cluster& cluster);
  // What AwaitStored is answered, before the cluster hears of it.
  void Stored(JobId job, const absl::Status& stored);
  // When nothing happens any more.
  void CheckAtRest(const Cluster& cluster, absl::Time now) const;

  // The scheduler was asked to end: jobs give their plans up, for the next one.
  void Drains() { drains_ = true; }
  // A new cluster has restored what the store has.
  void Restarted();

  // Attempts that go on with fewer ranks than the one before, and with more.
  int narrowed() const { return narrowed_; }
  int widened() const { return widened_; }

  // The least ranks with which the job runs: as it asks, and as it fits.
  static int LeastRanks(const Job& job);
  // Whether it waits for workers, and there are as many as it asks for at
  // least: whether a plan for them fits is seen when it is queued.
  static bool CouldNarrow(const Job& job, int idle);

 private:
  static bool GivesWay(const Job& job);
  // A job that waits in its places: which worker has which, by rank.
  struct Waiting {
    std::shared_ptr<const HandOut> handed;
    std::vector<WorkerId> seats;
    bool may_not_wait = false;  // whatever is saved of it
    bool may_lose = false;      // or where something could not be
  };

  // Workers that were idle at some time of the event: since then another job
  // may have taken them.
  int IdleInTheEvent(const Cluster& cluster) const;
  void OnStart(const SendToWorker& send, const Cluster& cluster);
  void OnSaveCopies(const SaveCopies& save, const Cluster& cluster);
  void OnQueued(const Job& job);
  static bool IsOnBadMachine(const Job& job);
  void CheckStored(const Job& job, const Waiting& waited) const;
  // Whether it was not to wait until they can be saved, in its last attempt.
  bool GaveUpCopies(const Job& job) const;
  // The same, for another cause than a disk.
  bool IsUnsavable(const Job& job) const;
  // It has lost nothing since that it kept while it waited.
  void CheckGoesOn(const Job& job, int64_t after) const;

  const FakeCompiler& compiler_;
  const SimulatedAttempts& attempts_;
  const SimulatedStore& store_;
  const std::map<WorkerId, SimulatedWorker>& workers_;
  bool drains_ = false;
  std::map<JobId, Waiting> waiting_;       // as they were last seen
  std::map<WorkerId, int64_t> busy_with_;  // jobs, before the event
  std::map<JobId, int64_t> left_;  // copies of this step, as it was queued
  std::map<JobId, int32_t> seen_;  // the last attempt that was handed out
  std::map<JobId, size_t> said_;   // events by then
  // The newest checkpoints: of which the store was asked, and has said so.
  std::map<JobId, int64_t> asked_;
  std::map<JobId, int64_t> known_;
  int narrowed_ = 0;
  int widened_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_ELASTIC_INVARIANTS_H_
