// The scheduler's store, in a simulation: what is queued reaches the disk when
// it is written, all of it or nothing, and is lost when the scheduler dies
// before. A full disk keeps the queue. A caller that asked for a flush is
// answered when the write that followed has ended.
#ifndef TROUPE_TESTS_FAULTS_SIMULATED_STORE_H_
#define TROUPE_TESTS_FAULTS_SIMULATED_STORE_H_

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"

namespace troupe {

class SimulatedStore {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // Queues the rows; the other actions are not its business.
  void Add(const Action& action);
  void Flush(Done done) { flushes_.push_back(std::move(done)); }

  // Writes what is queued; `disk` says how that ends.
  void Write(const absl::Status& disk);
  // The scheduler is gone: what was not written is lost.
  void Crash();

  // Of the job; the numbers of those that are on the disk.
  std::set<int64_t> StepsOf(JobId job) const;
  bool idle() const { return queued_.empty() && flushes_.empty(); }
  const std::map<JobId, JobRow>& jobs() const { return jobs_; }
  // Whether it was told to, by a cluster or by the limits.
  bool Forgot(JobId job) const { return forgotten_.count(job) > 0; }

  // As Store::Load: of the jobs that have ended only the newest, by id.
  std::vector<StoredJob> Load(const Limits& limits);

 private:
  void Apply(const Action& action);
  void Forget(JobId job);

  std::vector<Action> queued_;
  std::vector<Done> flushes_;
  std::map<JobId, JobRow> jobs_;
  std::map<JobId, PersistHandOut> hand_outs_;
  std::map<JobId, std::map<int64_t, StepRecord>> steps_;
  std::map<JobId, std::map<int64_t, JobEvent>> events_;
  std::set<JobId> forgotten_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_SIMULATED_STORE_H_
