// No job waits for ever for what others hold: whenever the living workers could
// run some unfinished job, some job makes progress within a bounded time.
//
// Workers that a job keeps while it waits in its places count as free, unless
// it would lose its state by giving them away. What is under way comes to an
// end by itself, for each phase but the two that wait has a limit.
#ifndef TROUPE_TESTS_FAULTS_PROGRESS_INVARIANTS_H_
#define TROUPE_TESTS_FAULTS_PROGRESS_INVARIANTS_H_

#include <vector>

#include "absl/time/time.h"
#include "scheduler/cluster/cluster.h"

namespace troupe {

class ProgressInvariants {
 public:
  // After every event.
  void Check(const Cluster& cluster, absl::Time now);
  void Restarted() {
    since_ = absl::InfiniteFuture();
    there_.clear();
  }

  // Some job could run, and none makes progress.
  static bool IsStuck(const Cluster& cluster, absl::Time now);

 private:
  void CheckSetAside(const Cluster& cluster, absl::Time now);

  absl::Time since_ = absl::InfiniteFuture();  // it is stuck
  std::vector<WorkerId> there_;                // alive, and to stay
  absl::Time calm_since_;                      // they are the same
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_PROGRESS_INVARIANTS_H_
