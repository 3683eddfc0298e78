// By which names a job's attempts are told apart where checkpoints go: in
// temporary directories, and in the lock of who holds the directory.
#ifndef TROUPE_WORKER_ENGINE_CHECKPOINT_HOLDER_H_
#define TROUPE_WORKER_ENGINE_CHECKPOINT_HOLDER_H_

#include <string>

#include "proto/job.pb.h"
#include "proto/worker.pb.h"

namespace troupe {

// "job-7-2", unique to this start of the job, and how those of all its attempts
// begin: "job-7-".
std::string AttemptToken(const RankRef& ref);
std::string JobToken(const RankRef& ref);

// "job gpt2 (job-7-2), pid 17 on host7", and how that of an earlier attempt
// begins, of which only JobToken is known.
std::string HolderOf(const JobSpec& job, const std::string& attempt_token);
std::string HolderBegins(const JobSpec& job, const std::string& job_token);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_CHECKPOINT_HOLDER_H_
