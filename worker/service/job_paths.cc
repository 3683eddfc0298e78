#include "worker/service/job_paths.h"

#include <string>

#include "proto/base/resume_words.h"
#include "proto/base/status.h"
#include "proto/plan/data_files.h"
#include "storage/disk/roots.h"

namespace troupe {

namespace {

absl::Status CheckResume(const std::string& resume) {
  if (IsResumeWord(resume)) return absl::OkStatus();
  return CheckJobPath("checkpoint.resume", resume);
}

}  // namespace

absl::Status CheckJobPaths(const JobSpec& job) {
  for (const DataFileField& file : DataFiles(job.data())) {
    RETURN_IF_ERROR(CheckJobPath(file.field, file.path));
  }
  RETURN_IF_ERROR(CheckJobPath("model.hf", job.model().hf()));
  RETURN_IF_ERROR(
      CheckJobPath("training.lora.adapter", job.training().lora().adapter()));
  RETURN_IF_ERROR(
      CheckJobPath("checkpoint.directory", job.checkpoint().directory()));
  RETURN_IF_ERROR(CheckJobPath("metrics.directory", job.metrics().directory()));
  RETURN_IF_ERROR(
      CheckJobPath("metrics.tensorboard", job.metrics().tensorboard()));
  return CheckResume(job.checkpoint().resume());
}

absl::Status CheckJobPaths(const Assignment& assignment) {
  RETURN_IF_ERROR(CheckJobPaths(assignment.plan().job()));
  return CheckResume(assignment.resume());
}

}  // namespace troupe
