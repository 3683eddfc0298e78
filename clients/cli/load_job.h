// A job file as every command takes it: read, and where its model is a Hugging
// Face directory, with what that says filled in.
#ifndef TROUPE_CLIENTS_CLI_LOAD_JOB_H_
#define TROUPE_CLIENTS_CLI_LOAD_JOB_H_

#include "absl/status/statusor.h"
#include "clients/job_file/job_file.h"

namespace troupe {

enum class JobUse {
  kRun,
  kPlan,  // weights that the job would begin with need not be there yet
};

// The errors of LoadJobFile; those of the directory, weights included where the
// job begins with them, bear the place of model.hf.
absl::StatusOr<JobFile> LoadJob(JobUse use, const JobFileOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOAD_JOB_H_
