// A job file as every command takes it: read, where its model is a Hugging Face
// directory with what that says filled in, and with steps in place of epochs,
// or as many as an evaluation takes.
#ifndef TROUPE_CLIENTS_CLI_LOAD_JOB_H_
#define TROUPE_CLIENTS_CLI_LOAD_JOB_H_

#include "absl/status/statusor.h"
#include "clients/job_file/job_file.h"

namespace troupe {

enum class JobUse {
  kRun,
  kPlan,  // weights may be absent; where present, only headers are read
};

// The errors of LoadJobFile; those of the directory bear the place of model.hf.
// Weights are checked where the job surely begins with them: not where it
// resumes. With `checkpoint.resume: auto` only their headers are read, and the
// workers check them where no checkpoint is found.
absl::StatusOr<JobFile> LoadJob(JobUse use, const JobFileOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOAD_JOB_H_
