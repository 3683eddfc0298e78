#include "clients/cli/load_job.h"

#include "clients/hugging_face/expand_model.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<JobFile> LoadJob(const JobFileOptions& options) {
  ASSIGN_OR_RETURN(JobFile job, LoadJobFile(options));
  if (!job.spec.has_model()) return job;
  const absl::Status expanded =
      ExpandHuggingFaceModel(*job.spec.mutable_model());
  if (!expanded.ok()) return job.Locate(expanded);
  return job;
}

}  // namespace troupe
