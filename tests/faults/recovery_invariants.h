// What must be true of jobs that recover, whatever happens to the cluster, held
// against the copies that its workers really have (simulated_copies.h):
//
// - an attempt goes on from the newest step of which every rank's state is
//   whole with a worker, whichever scheduler there was when it was made, and
//   where there is none, or the job lists a newer checkpoint, from that, or
//   from where it began; where copies are left, no more than a copy's steps and
//   one are lost;
// - one that begins from the queue again, to go on with others, goes on from
//   all that it did;
// - over all attempts no step is reported twice, and none is left out;
// - a job that lost a rank says what it waits for, and waits only where there
//   are not enough idle workers;
// - a worker that keeps copies is held for their job alone, and keeps none that
//   no job counts on.
//
// That a worker has what an attempt counts on, and is given nothing else while
// it keeps copies, the workers see themselves (simulated_recovery.cc).
#ifndef TROUPE_TESTS_FAULTS_RECOVERY_INVARIANTS_H_
#define TROUPE_TESTS_FAULTS_RECOVERY_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/cluster/cluster.h"
#include "tests/faults/simulated_attempt.h"
#include "tests/faults/simulated_store.h"
#include "tests/faults/simulated_worker.h"

namespace troupe {

class RecoveryInvariants {
 public:
  // Borrows both.
  RecoveryInvariants(const SimulatedAttempts& attempts,
                     const std::map<WorkerId, SimulatedWorker>& workers)
      : attempts_(attempts), workers_(workers) {}

  // Before the action is carried out.
  void OnAction(const Action& action, const Cluster& cluster);
  // After every event.
  void Check(const Cluster& cluster) const;
  // When nothing happens any more.
  void CheckAtRest(const Cluster& cluster) const;

  // A new cluster has restored what the store has.
  void Restarted(const SimulatedStore& store);

  // Attempts that went on from copies, and others that followed a failure.
  int from_copies() const { return from_copies_; }
  int from_elsewhere() const { return from_elsewhere_; }

  // All that was told of the job, a line each.
  static std::string EventLines(const Job& job);
  // How many workers the job waits for; 0: it does not.
  static int Missing(const Job& job);
  // Whether it keeps a bad machine until a disk takes what is there.
  static bool AwaitsDisk(const Job& job);
  // Whether it goes on with others when one of its workers leaves, or under the
  // next scheduler when this one is asked to end.
  static bool MayMove(const Job& job);
  static bool AsksToMove(const Job& job) {
    return job.spec.has_recovery() && job.spec.checkpoint().has_directory();
  }
  // Whether it waits for the checkpoints' directory of one that waits.
  static bool WaitsForDirectory(const Job& job, const Cluster& cluster);
  // The newest step of which the workers in the seats, by rank, could go on;
  // nothing: there is none.
  static std::optional<int64_t> NewestWhole(
      JobId job, const std::vector<WorkerId>& seats,
      const std::map<WorkerId, SimulatedWorker>& workers, const Plan& plan);

 private:
  void OnStart(const SendToWorker& send, const Cluster& cluster);
  void OnStep(const PersistStep& step);
  // Whether every rank's state must be whole with some worker after the
  // attempt.
  static bool LeavesCopies(const SimulatedAttempt& attempt, const Plan& plan);

  const SimulatedAttempts& attempts_;
  const std::map<WorkerId, SimulatedWorker>& workers_;
  std::map<JobId, int64_t> last_steps_;
  std::map<JobId, int32_t> seen_;  // the last attempt that was handed out
  std::map<JobId, int> restarts_;  // when it was seen
  std::set<JobId> cut_starts_;     // in a start, or moving, at the last restart
  int from_copies_ = 0;
  int from_elsewhere_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_RECOVERY_INVARIANTS_H_
