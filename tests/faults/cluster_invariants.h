// What must be true of a cluster whatever happens to it, held against what its
// workers really did (simulated_attempt.h), what its clients asked for and what
// the store has:
//
// - no job that a client was promised is lost, its end is final, and what was
//   asked to end never runs on, over restarts of the scheduler too;
// - a worker does one thing at a time, a rank has one worker, a run has all its
//   ranks or none, or waits for those that it lost, and one run at a time saves
//   in a directory;
// - an attempt's number is given away once, when it is on the disk;
// - a step is reported once, in order, when all ranks have finished it, and in
//   the end the store has each of them, however often the scheduler died;
// - a checkpoint is committed once, when all ranks have written their shards,
//   and the cluster lists what was committed, no more; a job that has succeeded
//   lists its last one, however often the scheduler died and its disk was full;
// - a job succeeds only when all ranks did, fails only where something went
//   wrong, and is cancelled only if somebody asked; what was to be saved is,
//   and a failure's reason is a cause, not the echo of one;
// - a job goes on after a restart of the scheduler if its workers live;
// - a healthy worker is not given up, a text ends once, a job that waits says
//   why.
#ifndef TROUPE_TESTS_FAULTS_CLUSTER_INVARIANTS_H_
#define TROUPE_TESTS_FAULTS_CLUSTER_INVARIANTS_H_

#include <map>
#include <set>
#include <string>
#include <utility>

#include "scheduler/cluster/cluster.h"
#include "tests/faults/simulated_attempt.h"
#include "tests/faults/simulated_store.h"
#include "tests/faults/simulated_worker.h"

namespace troupe {

using SimulatedWorkers = std::map<WorkerId, SimulatedWorker>;

class ClusterInvariants {
 public:
  // Borrows all.
  ClusterInvariants(SimulatedAttempts& attempts, const SimulatedStore& store,
                    const SimulatedWorkers& workers)
      : attempts_(attempts), store_(store), workers_(workers) {}

  // --- What is asked from outside ---

  void Promised(JobId job) { promised_.insert(job); }
  void AskedToEnd(JobId job) { asked_to_end_.insert(job); }
  // The client that asked was told that this is on the disk.
  void PromisedToEnd(JobId job) { promised_to_end_.insert(job); }
  // A worker of it asked, and the cluster may not have heard of that yet.
  void MayEnd(JobId job) { may_end_.insert(job); }
  // While it ran; false: and then at once, which need not save it.
  void AskedToSave(JobId job, bool save);
  // Something happened to it that a healthy job does not meet.
  void Harmed(JobId job) { harmed_.insert(job); }
  void AskedForText(int64_t text) { texts_.insert(text); }
  void AbandonedText(int64_t text) { texts_.erase(text); }

  // --- What the cluster does: before the action is carried out ---

  void OnAction(const Action& action, const Cluster& cluster);

  // After every event.
  void Check(const Cluster& cluster);
  // When nothing happens any more.
  void CheckAtRest(const Cluster& cluster);

  // A new cluster has restored what the store has. Then Check.
  void Restarted();

  // How many jobs have succeeded that ran when a scheduler was killed.
  int adopted() const { return adopted_; }
  // How many jobs have ended so.
  int ended_as(JobState state) const {
    const auto it = ends_.find(state);
    return it == ends_.end() ? 0 : it->second;
  }

 private:
  void OnStart(const SendToWorker& send, const Cluster& cluster);
  void OnCommit(const SendToWorker& send, const Cluster& cluster);
  void OnStep(const PersistStep& step, const Cluster& cluster);
  void CheckWorkers(const Cluster& cluster);
  void CheckJobs(const Cluster& cluster);
  void CheckRun(const Job& job, const std::set<int>& seats);
  void CheckState(const Job& job);
  void CheckEnd(const Job& job);
  void CheckAwaited(const Job& job, const Cluster& cluster);
  void CheckCheckpoints(const Job& job);
  const SimulatedAttempt* AttemptOf(const Job& job) const;
  bool WasHarmed(const Job& job) const;
  // By an attempt of the job, there or anywhere.
  bool WasCommitted(JobId job, int64_t step,
                    const std::string& path = "") const;

  SimulatedAttempts& attempts_;
  const SimulatedStore& store_;
  const SimulatedWorkers& workers_;

  std::set<JobId> promised_;
  std::set<JobId> promised_to_end_;
  std::set<JobId> asked_to_end_;
  std::set<JobId> may_end_;
  std::set<JobId> to_be_saved_;
  std::set<JobId> harmed_;
  std::set<JobId> interrupted_;  // ran when the scheduler was killed
  int adopted_ = 0;
  std::set<int64_t> texts_;
  std::map<JobId, std::pair<JobState, std::string>> ended_;  // with the reason
  std::map<JobState, int> ends_;
  std::map<JobId, JobState> states_;  // as they were last seen
  std::set<JobId> over_;              // seen when nothing of it was left to run
  std::map<AttemptKey, int64_t> last_steps_;
  std::set<std::pair<AttemptKey, int64_t>> commits_asked_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_CLUSTER_INVARIANTS_H_
