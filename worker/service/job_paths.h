// The paths that come to a worker from outside, each held to its roots
// (storage/disk/roots.h) before anything is done with them: a job's, in its
// plan, and a checkpoint's, in a request. A path that is added to the job file
// must be added here.
#ifndef TROUPE_WORKER_SERVICE_JOB_PATHS_H_
#define TROUPE_WORKER_SERVICE_JOB_PATHS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"

namespace troupe {

// data.tokens, model.hf, checkpoint.directory, those of metrics and
// checkpoint.resume. The errors of CheckJobPath, of the first that leads elsewhere.
absl::Status CheckJobPaths(const JobSpec& job);
// And the checkpoint from which this one resumes.
absl::Status CheckJobPaths(const Assignment& assignment);

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_JOB_PATHS_H_
