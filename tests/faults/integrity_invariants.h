// What holds where ranks do not report the same: a worker that computed
// wrongly, as far as what the scheduler has heard tells, gets no rank until a
// person puts it back; nobody else is cordoned for it; and nothing that came of
// the step in which they differ is committed or gone on from.
#ifndef TROUPE_TESTS_FAULTS_INTEGRITY_INVARIANTS_H_
#define TROUPE_TESTS_FAULTS_INTEGRITY_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "scheduler/cluster/cluster.h"
#include "tests/faults/simulated_attempt.h"

namespace troupe {

class IntegrityInvariants {
 public:
  // Borrows it, and says in it since when attempts are known to be wrong.
  explicit IntegrityInvariants(SimulatedAttempts& attempts)
      : attempts_(attempts) {}

  // A bit was flipped under a rank of this worker.
  void Flipped(const std::string& worker) { flipped_.insert(worker); }
  // What a worker says, before the cluster hears it.
  void Hear(WorkerId from, const WorkerMessage& message,
            const Cluster& cluster);
  // Before the action is carried out.
  void OnAction(const Action& action, const Cluster& cluster);
  // After every event.
  void Check(const Cluster& cluster);
  // By a person.
  void PutBack(const std::string& worker);
  // A new cluster has restored what the store has, which is nothing of this.
  // Ranks go on, right and wrong ones.
  void Restarted();

  // Attempts whose ranks were heard to differ, and workers that were known to
  // be the wrong ones.
  int differed() const { return differed_; }
  int known() const { return known_; }

 private:
  struct Report {
    double loss = 0;
    std::string worker;
  };
  // Of an attempt, by step and rank: what was heard before all had reported it.
  using Heard = std::map<int64_t, std::map<int, Report>>;

  // The attempt is over: the worker that was wrong in it is known, or none is.
  void Judge(const AttemptKey& key, const Cluster& cluster);
  void JudgeThoseOfBefore(const AttemptKey& key, const Cluster& cluster);

  SimulatedAttempts& attempts_;
  std::set<std::string> flipped_;
  std::map<AttemptKey, Heard> heard_;
  std::set<AttemptKey> to_judge_;
  std::map<std::string, std::string> aside_;  // workers that get nothing; why
  // Jobs of which they had a rank by then: that they keep. Their own had ended
  // before the others reported the step.
  std::map<std::string, int64_t> keeps_;
  int differed_ = 0;
  int known_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_INTEGRITY_INVARIANTS_H_
