// The form in which a job's run outlives the scheduler. A run becomes a record,
// and the next scheduler makes a phase of the record:
//
//   Run --StoreRun--> StoredRun --ResumePhase--> the phase that it begins with
//
// The record is a part of the job's row, written with WriteRun each time that
// the row is, and read with TakeRun. Which worker has which rank is a part of
// the status that all see (JobStatus.workers), and what the ranks were handed
// is a row of its own (HandOut).
//
//   stored as                               resumed as
//   Storing, Starting, Training, Adopting   Adopting: all ranks are awaited
//   Stopping, LetGo, AwaitPlaces,           Stopping: the same, and they are
//   SavingCopies                            told again to stop
#ifndef TROUPE_SCHEDULER_CLUSTER_STORED_RUN_H_
#define TROUPE_SCHEDULER_CLUSTER_STORED_RUN_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "proto/status.pb.h"
#include "scheduler/cluster/phase_data.h"
#include "scheduler/cluster/run.h"

namespace troupe {

struct StoredRun {
  JobPhase phase = JOB_PHASE_UNSPECIFIED;  // one of a run
  JobIntent intent = INTENT_RUN;
  std::string save_why;    // where it is to be saved before it is cancelled
  bool cancelled = false;  // JobRow's
  bool goes_on = false;    // phase::Stopped's
  // Ranks that have let go, and after which step: of a job that recovers only
  // those that did all that they had to do.
  std::map<int, int64_t> ended;

  // Whether its ranks were told to stop.
  bool stops() const;
  // What is to become of it now. Of one that moved some ranks have heard that
  // they are to stop, and have perhaps saved: it recovers from what they keep.
  JobIntent intent_now() const;
};

// `status` is the job's: of it come the phase and the intent,
StoredRun StoreRun(const Run& run, const JobStatus& status);
// and the reason to stop or to begin.
RunPhase ResumePhase(const StoredRun& stored, const JobStatus& status,
                     absl::Time now);

// Into the status of a row. Without a run there is nothing to be read.
void WriteRun(const StoredRun& stored, JobStatus& status);
void WriteNoRun(JobStatus& status);
// Reads what this build wrote, or one before it, and takes it out of the
// status. REQUIRES: the job was neither queued nor ended.
StoredRun TakeRun(JobStatus& status, bool cancelled);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_STORED_RUN_H_
