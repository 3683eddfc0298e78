// A job with `elastic` on three workers.
#ifndef TROUPE_TESTS_SCHEDULER_CLUSTER_ELASTIC_HARNESS_H_
#define TROUPE_TESTS_SCHEDULER_CLUSTER_ELASTIC_HARNESS_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/recovery_harness.h"

namespace troupe {

// On w0, w1 and w2, in slices unless said otherwise; every rank keeps its own
// copy, and that of the rank before it.
struct Elastic : RecoveryHarness {
  explicit Elastic(int min_workers = 1, int zero = 0, int restarts = 100) {
    w = JoinMany(3);
    JobSpec spec = RecoveringSpec(3, restarts);
    spec.mutable_elastic()->set_min_workers(min_workers);
    spec.mutable_parallelism()->set_zero(zero);
    id = Submit(spec);
    AllReady(id, w, 1);
    for (const int64_t step : {1, 2}) AllStep(id, w, step);
  }
  // w2 is lost, and the others keep copies of these steps.
  void LoseTheLast(const std::vector<int64_t>& steps) {
    Disconnect(w[2], "connection closed");
    EndsKeeping(id, 0, w[0], steps);
    EndsKeeping(id, 1, w[1], steps);
  }
  // Keeps a copy of its own state, and one of its peer's.
  void EndsKeepingPeers(JobId of, int rank, WorkerId from, int64_t step) {
    WorkerMessage message;
    RankEnded& ended = *message.mutable_ended();
    *ended.mutable_ref() = Ref(of, rank);
    ended.set_error("told to stop");
    ended.set_stopped(true);
    KeptCopy& kept = *ended.add_kept();
    kept.mutable_state()->set_step(step);
    kept.set_own(true);
    kept.set_peer(true);
    Send(from, message);
  }
  // Nobody comes or goes for long enough.
  void Calm() { Pass(absl::Seconds(3), alive()); }
  // w2 is lost, and w0 is asked to commit.
  void CopiesAreWritten() {
    LoseTheLast({2});
    Calm();
    Saved(w[1]);
    Saved(w[0]);
    CHECK(Asked(w[0]).back().has_commits());
  }
  // What it was asked last about the job. REQUIRES: stored_by_hand.
  void StoreAnswers(const absl::Status& stored) {
    std::vector<AwaitStored> asked = All<AwaitStored>();
    ClearActions();
    while (!asked.empty() && asked.back().job != id) asked.pop_back();
    ASSERT_FALSE(asked.empty()) << "the store is not asked";
    Stored(asked.back(), stored);
  }
  std::vector<WorkerId> alive() const {
    std::vector<WorkerId> ids;
    for (const Worker* worker : cluster.workers().Alive()) {
      ids.push_back(worker->id);
    }
    return ids;
  }
  bool Says(const std::string& text) const {
    return RecoveryHarness::Says(id, text);
  }

  std::vector<WorkerId> w;
  JobId id;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_CLUSTER_ELASTIC_HARNESS_H_
