#include "worker/engine/checkpoint_holder.h"

#include "absl/strings/str_cat.h"
#include "storage/disk/file_lock.h"

namespace troupe {

std::string AttemptToken(const RankRef& ref, const std::string& run_id) {
  return absl::StrCat(JobToken(ref, run_id), ref.attempt());
}

std::string JobToken(const RankRef& ref, const std::string& run_id) {
  return absl::StrCat("job-", ref.job(), "-", run_id, "-");
}

// Until there is one, all attempts resume what the job says.
bool ResumesItsOwn(const JobSpec& job, const HolderOptions& options) {
  return options.ran_before && !options.resume.empty() &&
         options.resume != job.checkpoint().resume();
}

CheckpointFolderOptions FolderOptionsOf(const JobSpec& job,
                                        const HolderOptions& options) {
  const CheckpointSpec& checkpoint = job.checkpoint();
  // "job gpt2 (job-7-3f2a9c1e5b7d8046-2), pid 17 on host7"
  const std::string name = absl::StrCat("job ", job.name(), " (");
  // What another attempt began to overwrite is not overwritten before there is
  // a checkpoint of the job's own, from which it would go on.
  const bool anew = !options.ran_before || checkpoint.overwrite();
  const bool started_anew =
      ResumesItsOwn(job, options) &&
      !GoesOnIn(checkpoint.directory(), checkpoint.resume());
  return {
      .directory = checkpoint.directory(),
      .holder = absl::StrCat(name, options.token, "), ", ThisProcessName()),
      .starts_anew = anew && !GoesOnIn(checkpoint.directory(), options.resume),
      .overwrite = checkpoint.overwrite(),
      .goes_on_from = started_anew ? options.resume : "",
      .supersedes =
          options.ran_before ? absl::StrCat(name, options.job_token) : ""};
}

}  // namespace troupe
