// How a job holds the directory where its checkpoints go, and by which names
// its attempts are told apart there: in temporary directories, and in the lock.
#ifndef TROUPE_WORKER_ENGINE_CHECKPOINT_HOLDER_H_
#define TROUPE_WORKER_ENGINE_CHECKPOINT_HOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "storage/checkpoint/checkpoint_folder.h"
#include "worker/engine/rank_listener.h"

namespace troupe {

// "job-7-3f2a9c1e5b7d8046-2", unique to this start of the job, and how those of
// all its attempts begin: "job-7-3f2a9c1e5b7d8046-". Numbers alone do not tell
// jobs of two clusters apart, which may meet in one directory: `run_id` is
// JobStatus.run_id.
std::string AttemptToken(const RankRef& ref, const std::string& run_id);
std::string JobToken(const RankRef& ref, const std::string& run_id);

// How the job takes hold of its directory.
struct HolderOptions {
  std::string token;      // of this attempt, or of what it does
  std::string job_token;  // how those of all attempts begin
  std::string resume;     // from where it goes on; empty: from nothing
  bool ran_before =
      false;  // an earlier attempt did: its holder is superseded
};
// "job gpt2 (job-7-3f2a9c1e5b7d8046-2), pid 17 on host7": what it says of itself
// in a lock.
std::string HolderLine(const JobSpec& job, const HolderOptions& options);
// What is in the line of each earlier attempt, which it supersedes; empty:
// there was none.
std::string SupersededLine(const JobSpec& job, const HolderOptions& options);

// Whether `resume` is a checkpoint that an earlier attempt of the job wrote.
bool ResumesItsOwn(const JobSpec& job, const HolderOptions& options);
CheckpointFolderOptions FolderOptionsOf(const JobSpec& job,
                                        const HolderOptions& options);

// At the start of an attempt: proves that this rank can write where checkpoints
// go. One rank commits and prunes, so rank 0 holds the directory; others get
// null. A job that ran before goes on where there is no room for checkpoints,
// as it does where the disk is full a step later: then the folder is not held
// yet, and the listener is warned. The errors begin with
// "checkpoint.directory".
absl::StatusOr<std::unique_ptr<CheckpointFolder>> OpenCheckpointFolder(
    const JobSpec& job, const HolderOptions& options, int rank,
    RankListener& listener);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_CHECKPOINT_HOLDER_H_
