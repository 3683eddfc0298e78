// What the ranks of one attempt of a job do together, in a simulation: the sum
// that ends each step, and the checkpoint that they write. It is also what has
// really happened, to be held against what the cluster says
// (cluster_invariants).
#ifndef TROUPE_TESTS_FAULTS_SIMULATED_ATTEMPT_H_
#define TROUPE_TESTS_FAULTS_SIMULATED_ATTEMPT_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "tests/faults/simulated_copies.h"

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
  std::set<int> told;     // to which ranks the scheduler gave a worker
  std::set<int> gone;     // that ended, or whose workers did
  std::set<int> lost;     // whose workers died, left or were cut off
  bool given_up = false;  // workers were told to forget what it left
  std::map<int64_t, Sum> sums;
  std::map<int, int64_t> finished;          // by rank: its last step
  std::map<int64_t, std::set<int>> shards;  // on the disk; by write: ranks
  std::map<int, int64_t> writes;            // by rank: how many have ended
  std::map<int64_t, int> commits;           // by step: how often
  int writes_given_up = 0;                  // on all ranks
  int written_later = 0;                    // commits of what was given up
  std::set<std::string> from_copies;  // checkpoints that its copies became
  std::set<int> ended_ok;
  // Something happened to a rank of it that a healthy job does not meet.
  bool harmed = false;
  // One of its ranks computed wrongly from some step on.
  bool flipped = false;
  // The scheduler has heard since which step.
  static constexpr int64_t kNeverWrong = std::numeric_limits<int64_t>::max();
  int64_t known_wrong = kNeverWrong;
  // Where it goes on.
  int64_t begins_after = 0;
  std::map<int, SimulatedCopies> brought;  // by rank: what it came with
  std::set<int32_t> histories;             // of the states that it goes on from
  std::map<int64_t, std::set<int>> keeps;  // by step: ranks that began a copy

  void BeginAs(const Assignment& assignment) {
    begins_after = assignment.has_recovery()
                       ? assignment.recovery().state().step()
                       : StepOfCheckpoint(assignment.resume());
  }
  int64_t KeepEvery() const {
    int64_t every = 1;
    return absl::SimpleAtoi(job.recovery().every(), &every) ? every : 1;
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

  // "/r", from which some jobs begin, or one of CheckpointPath.
  static int64_t StepOfCheckpoint(const std::string& path) {
    if (path.empty()) return 0;
    int64_t step = kResumedAfter;
    const size_t at = path.rfind('-');
    if (at != path.npos)
      EXPECT_TRUE(absl::SimpleAtoi(path.substr(at + 1), &step));
    return step;
  }
  static constexpr int64_t kResumedAfter = 2;
};

// By job and attempt.
using AttemptKey = std::pair<int64_t, int32_t>;
using SimulatedAttempts = std::map<AttemptKey, SimulatedAttempt>;

inline AttemptKey KeyOf(const RankRef& ref) {
  return {ref.job(), ref.attempt()};
}

// Over all attempts of the job: the last step that all ranks of one finished.
inline int64_t FinishedByAll(const SimulatedAttempts& attempts, int64_t job) {
  int64_t step = 0;
  for (auto it = attempts.lower_bound({job, 0});
       it != attempts.end() && it->first.first == job; ++it) {
    step = std::max(step, it->second.FinishedByAll());
  }
  return step;
}

// Some rank of the job computed wrongly once. What is newest is not what it may
// go on from, then: IntegrityInvariants looks at that.
inline bool WasFlipped(const SimulatedAttempts& attempts, int64_t job) {
  for (auto it = attempts.lower_bound({job, 0});
       it != attempts.end() && it->first.first == job; ++it) {
    if (it->second.flipped) return true;
  }
  return false;
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
