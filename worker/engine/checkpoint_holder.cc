#include "worker/engine/checkpoint_holder.h"

#include "absl/strings/str_cat.h"
#include "storage/disk/file_lock.h"

namespace troupe {

std::string AttemptToken(const RankRef& ref) {
  return absl::StrCat(JobToken(ref), ref.attempt());
}

std::string JobToken(const RankRef& ref) {
  return absl::StrCat("job-", ref.job(), "-");
}

std::string HolderOf(const JobSpec& job, const std::string& attempt_token) {
  return absl::StrCat(HolderBegins(job, attempt_token), "), ",
                      ThisProcessName());
}

std::string HolderBegins(const JobSpec& job, const std::string& job_token) {
  return absl::StrCat("job ", job.name(), " (", job_token);
}

}  // namespace troupe
