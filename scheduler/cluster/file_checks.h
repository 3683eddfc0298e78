// Whether the files that a job names are where workers look for them, asked
// before the job is queued. The scheduler may run where no file of a job is to
// be seen, so a few workers look (CheckJobFiles), of several hosts if there are
// some, and idle ones first.
//
// A job is refused where all that were asked find its files wrong. One worker
// that finds all well, or does not answer in time, or is lost, is enough: a
// wrong mount on a host, or a wrong root of a worker, must not keep jobs from a
// queue, as their start is tried elsewhere too (policy/starts_elsewhere.h).
// Where none can be asked, all is taken to be well, too, and the ranks find out
// when the job starts.
#ifndef TROUPE_SCHEDULER_CLUSTER_FILE_CHECKS_H_
#define TROUPE_SCHEDULER_CLUSTER_FILE_CHECKS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class FileChecks {
 public:
  // Borrows the table.
  FileChecks(const Limits& limits, const WorkerTable& workers)
      : limits_(limits), workers_(workers) {}

  // The number under which a FilesLookedAt action will come. 0: none will, as
  // nobody can be asked, or too many questions are open.
  int64_t Start(const JobSpec& job, absl::Time now, Actions& actions);

  void HandleMessage(WorkerId from, const JobFilesChecked& answer,
                     Actions& actions);
  void WorkerGone(WorkerId worker, Actions& actions);
  // Ends those that have waited long enough.
  void Tick(absl::Time now, Actions& actions);
  // Time in which nobody could be heard.
  void Forgive(absl::Duration time);

 private:
  struct Check {
    absl::Time began;
    std::map<WorkerId, std::string> asked;  // have not answered, with names
    std::string error;                      // the first
  };
  using Checks = std::map<int64_t, Check>;

  // With what the answers so far say.
  Checks::iterator End(Checks::iterator it, Actions& actions);

  const Limits limits_;
  const WorkerTable& workers_;
  int64_t next_ = 1;
  Checks checks_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_FILE_CHECKS_H_
