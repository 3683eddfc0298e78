// What the scheduler remembers of workers by their names, whatever process has
// the name: which ones a person has cordoned, and where jobs failed for a cause
// that lay in the worker or its machine (a path, a disk, a device, its death).
//
// One bad worker is idle more often than the good ones, since what it gets
// fails at once: left alone, it fails a whole queue. So a worker where one rank
// failed is taken after the others (`doubted`), and one where several jobs
// failed is set aside: it gets no rank until a person says otherwise.
//
// A failure counts against a worker only where the job is known to run
// elsewhere: a wrong path in a job's file fails on all of them, and says
// nothing of any (phase_data.h, Blame). Of each job one counts.
#ifndef TROUPE_SCHEDULER_CLUSTER_WORKER_RECORDS_H_
#define TROUPE_SCHEDULER_CLUSTER_WORKER_RECORDS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/ids.h"

namespace troupe {

struct LocalFailure {
  JobId job;
  std::string why;
};

struct WorkerRecord {
  std::string name;
  bool cordoned = false;
  std::string cordoned_why;            // of the client's; may be empty
  std::vector<LocalFailure> failures;  // since it last did well; oldest first
  bool set_aside = false;              // for those
  bool doubted = false;                // its last rank failed there; not stored

  // In a sentence; empty: it may get ranks.
  std::string WhySetAside() const;
  // The higher, the later it is taken.
  int doubt() const { return static_cast<int>(failures.size()) + doubted; }
  bool empty() const { return !cordoned && !set_aside && doubt() == 0; }
};

// Whether a worker is to be set aside after `failures` failures of different
// jobs. Never more than half of those that there are: what fails on more is no
// fault of theirs, and a cluster without workers helps nobody.
struct InService {
  int failures = 0;    // of this worker
  int in_service = 0;  // workers, with this one
  int alive = 0;       // with those that are set aside
};
bool IsToBeSetAside(const InService& workers, int failures_max);

// All of them. What has changed since the last TakeChanged is to be stored.
class WorkerRecords {
 public:
  // Further failures of names that have no record are not remembered.
  static constexpr size_t kRecordsMax = 1 << 15;
  // Of one worker; older ones are dropped.
  static constexpr size_t kFailuresMax = 16;

  void Restore(std::vector<WorkerRecord> records);

  // An empty one where nothing is remembered.
  const WorkerRecord& Of(const std::string& name) const;

  void Cordon(const std::string& name, const std::string& why);
  // In service again, and its failures are forgotten.
  void Uncordon(const std::string& name);

  void Doubt(const std::string& name);
  // False: this job counts already, or there is no room.
  bool AddFailure(const std::string& name, JobId job, const std::string& why);
  void SetAside(const std::string& name);
  // A rank of it did well. What a person said, or what set it aside, stays.
  void ForgetFailures(const std::string& name);

  // Whether some worker is, there or not.
  bool any_set_aside() const { return set_aside_ > 0; }

  // As they are now; an empty one is to be removed from the store.
  std::vector<WorkerRecord> TakeChanged();

 private:
  // Null: no room.
  WorkerRecord* Record(const std::string& name);
  void Changed(const std::string& name);

  std::map<std::string, WorkerRecord> records_;
  int set_aside_ = 0;  // of them
  std::set<std::string> changed_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_WORKER_RECORDS_H_
