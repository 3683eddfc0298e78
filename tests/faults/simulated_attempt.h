// What the ranks of one attempt of a job do together, in a simulation: the sum
// that ends each step, and the checkpoint that they write. It is also what has
// really happened, to be held against what the cluster says
// (cluster_invariants).
#ifndef TROUPE_TESTS_FAULTS_SIMULATED_ATTEMPT_H_
#define TROUPE_TESTS_FAULTS_SIMULATED_ATTEMPT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"

namespace troupe {

struct SimulatedAttempt {
  // A step ends for all ranks when the last has come to its sum.
  struct Sum {
    std::set<int> arrived;
    bool stop = false;  // some rank was asked to
    bool save = false;
  };
  JobSpec job;
  int ranks = 0;
  std::set<int> told;  // to which ranks the scheduler gave a worker
  std::set<int> gone;  // that ended, or whose workers did
  std::map<int64_t, Sum> sums;
  std::map<int, int64_t> finished;          // by rank: its last step
  std::map<int64_t, std::set<int>> shards;  // on the disk; by step: ranks
  std::map<int64_t, int> commits;           // by step: how often
  std::set<int> ended_ok;
  // Something happened to a rank of it that a healthy job does not meet.
  bool harmed = false;

  int64_t FirstStep() const {
    return job.checkpoint().resume().empty() ? 1 : kResumedAfter + 1;
  }
  // That all ranks have finished.
  int64_t FinishedByAll() const {
    if (finished.size() < static_cast<size_t>(ranks)) return 0;
    int64_t step = finished.begin()->second;
    for (const auto& [rank, last] : finished) step = std::min(step, last);
    return step;
  }
  bool Saves() const { return !job.checkpoint().directory().empty(); }
  bool SavesAfter(int64_t step) const {
    const int64_t every = job.checkpoint().every();
    return Saves() &&
           (step == job.training().steps() || (every > 0 && step % every == 0));
  }

  static constexpr int64_t kResumedAfter = 2;
};

// By job and attempt.
using AttemptKey = std::pair<int64_t, int32_t>;
using SimulatedAttempts = std::map<AttemptKey, SimulatedAttempt>;

inline AttemptKey KeyOf(const RankRef& ref) {
  return {ref.job(), ref.attempt()};
}

// Where the attempt's checkpoint of this step is.
inline std::string CheckpointPath(const SimulatedAttempt& attempt,
                                  const AttemptKey& key, int64_t step) {
  return absl::StrCat(attempt.job.checkpoint().directory(), "/job-", key.first,
                      "-", key.second, "/step-", step);
}

// What one rank's shard says of itself.
inline std::string ShardWords(const AttemptKey& key, int64_t step, int rank) {
  return absl::StrCat("job ", key.first, ", attempt ", key.second, ", step ",
                      step, ", rank ", rank);
}

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_SIMULATED_ATTEMPT_H_
