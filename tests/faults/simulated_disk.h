// What workers save on, in a simulation, as far as it tells attempts apart: the
// checkpoints of each job, until they are pruned, and the shards of copies that
// are none yet (worker/service/copies_saver.h).
#ifndef TROUPE_TESTS_FAULTS_SIMULATED_DISK_H_
#define TROUPE_TESTS_FAULTS_SIMULATED_DISK_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace troupe {

class SimulatedDisk {
 public:
  // Of the copies that are saved under this token, the shard of this rank.
  void Write(const std::string& token, int rank) {
    shards_[token].insert(rank);
  }
  int Shards(const std::string& token) const {
    const auto found = shards_.find(token);
    return found == shards_.end() ? 0 : static_cast<int>(found->second.size());
  }
  // All of them are given up, or became a checkpoint.
  void Remove(const std::string& token) { shards_.erase(token); }

  void Add(int64_t job, int64_t step, const std::string& path) {
    checkpoints_[job][step].insert(path);
  }
  bool Has(int64_t job, int64_t step, const std::string& path) const {
    const auto of_job = checkpoints_.find(job);
    if (of_job == checkpoints_.end()) return false;
    const auto of_step = of_job->second.find(step);
    return of_step != of_job->second.end() && of_step->second.count(path) > 0;
  }
  // Leaves those of the newest steps up to `written`, `keep` of them, and of
  // later ones; 0: all.
  void Prune(int64_t job, int64_t written, int keep) {
    if (keep == 0) return;
    auto& steps = checkpoints_[job];
    auto oldest = steps.upper_bound(written);
    while (keep > 0 && oldest != steps.begin()) {
      --oldest;
      --keep;
    }
    steps.erase(steps.begin(), oldest);
  }

 private:
  std::map<std::string, std::set<int>> shards_;  // by token
  // By job and step: their paths.
  std::map<int64_t, std::map<int64_t, std::set<std::string>>> checkpoints_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_SIMULATED_DISK_H_
