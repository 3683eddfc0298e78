#include "worker/service/job_paths.h"

#include <string>

#include "proto/base/status.h"
#include "storage/disk/roots.h"

namespace troupe {

absl::Status CheckJobPaths(const Assignment& assignment) {
  const JobSpec& job = assignment.plan().job();
  RETURN_IF_ERROR(CheckJobPath("data.tokens", job.data().tokens()));
  RETURN_IF_ERROR(CheckJobPath("model.hf", job.model().hf()));
  RETURN_IF_ERROR(
      CheckJobPath("checkpoint.directory", job.checkpoint().directory()));
  for (const std::string& resume :
       {job.checkpoint().resume(), assignment.resume()}) {
    if (resume == "latest") continue;
    RETURN_IF_ERROR(CheckJobPath("checkpoint.resume", resume));
  }
  return absl::OkStatus();
}

}  // namespace troupe
