#include "clients/cli/cluster_flags.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/shell_word.h"
#include "proto/base/status.h"

namespace troupe {

void ClusterFlags::Declare(Flags& flags) {
  flags.Text("--dir", dir_,
             {.value = "DIR",
              .text = "The folder of a cluster that `troupe up` started "
                      "[TROUPE_DIR]"});
  flags.Text("--scheduler", scheduler_,
             {.value = "HOST:PORT", .text = "The scheduler's address"});
}

absl::StatusOr<Endpoints> ClusterFlags::Find(const Console& console) const {
  return FindScheduler({.scheduler = scheduler_,
                        .dir = dir_,
                        .environment_dir = console.environment_dir});
}

absl::StatusOr<std::unique_ptr<Client>> ClusterFlags::Connect(
    const Console& console) const {
  ASSIGN_OR_RETURN(const Endpoints endpoints, Find(console));
  return Client::Connect(endpoints.grpc);
}

std::string ClusterFlags::Words() const {
  if (!scheduler_.empty()) {
    return absl::StrCat(" --scheduler ", ShellWord(scheduler_));
  }
  if (!dir_.empty()) return absl::StrCat(" --dir ", ShellWord(dir_));
  return "";
}

absl::StatusOr<int64_t> FindJob(Client& client, const std::string& job) {
  int64_t id = 0;
  if (absl::SimpleAtoi(job, &id)) return id;
  ASSIGN_OR_RETURN(const ListJobsResponse list, client.ListJobs());
  int64_t newest = 0;
  for (const JobStatus& status : list.jobs()) {
    if (job == "latest" || status.name() == job) {
      newest = std::max<int64_t>(newest, status.id());
    }
  }
  if (newest > 0) return newest;
  if (list.jobs().empty()) {
    return absl::NotFoundError(
        absl::StrCat("no job ", job, ": this cluster has had none"));
  }
  return absl::NotFoundError(absl::StrCat(
      "no job is called ", job, "; troupe jobs lists those there are"));
}

}  // namespace troupe
