#include "clients/cli/cluster_flags.h"

#include <algorithm>
#include <ostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cli/insecure_line.h"
#include "proto/base/shell_word.h"
#include "proto/base/status.h"
#include "proto/trust/certificate_end.h"

namespace troupe {

void ClusterFlags::Declare(Flags& flags) {
  flags.Text("--dir", dir_,
             {.value = "DIR",
              .text = "The folder of a cluster that `troupe up` started "
                      "[TROUPE_DIR]"});
  flags.Text("--scheduler", scheduler_,
             {.value = "HOST:PORT", .text = "The scheduler's address"});
  flags.Text("--certificates", certificates_,
             {.value = "DIR",
              .text = "A client's certificate [trust/client in the cluster's "
                      "folder]"});
  flags.Count("--insecure", insecure_,
              "No certificates, no TLS; on loopback only, unless given twice");
}

absl::StatusOr<Endpoints> ClusterFlags::Find(const Console& console) const {
  return FindScheduler({.scheduler = scheduler_,
                        .dir = dir_,
                        .environment_dir = console.environment_dir,
                        .certificates = certificates_,
                        .insecure = insecure_});
}

absl::StatusOr<std::unique_ptr<Client>> ClusterFlags::Connect(
    const Console& console) const {
  ASSIGN_OR_RETURN(const Endpoints endpoints, Find(console));
  if (endpoints.trust.insecure > 0 && console.terminal) {
    console.err << InsecureLine(console) << "\n";
  }
  const std::string ends =
      CertificateEndsSoon(endpoints.trust, PeerRole::kClient, absl::Now());
  if (!ends.empty()) console.err << "troupe: " << ends << "\n";
  return Client::Connect(endpoints.grpc, {.trust = endpoints.trust});
}

std::string ClusterFlags::Words() const {
  std::string words;
  if (!scheduler_.empty()) {
    words = absl::StrCat(" --scheduler ", ShellWord(scheduler_));
  } else if (!dir_.empty()) {
    words = absl::StrCat(" --dir ", ShellWord(dir_));
  }
  if (!certificates_.empty()) {
    absl::StrAppend(&words, " --certificates ", ShellWord(certificates_));
  }
  for (int i = 0; i < insecure_; ++i) absl::StrAppend(&words, " --insecure");
  return words;
}

absl::StatusOr<int64_t> FindJob(Client& client, const std::string& job) {
  int64_t id = 0;
  if (absl::SimpleAtoi(job, &id)) return id;
  ASSIGN_OR_RETURN(const ListJobsResponse list, client.ListJobs());
  int64_t newest = 0;
  int64_t newest_made = 0;  // of those that commands made for their own use
  for (const JobStatus& status : list.jobs()) {
    if (job == "latest" ? status.made_by().empty() : status.name() == job) {
      newest = std::max<int64_t>(newest, status.id());
    }
    if (!status.made_by().empty()) {
      newest_made = std::max<int64_t>(newest_made, status.id());
    }
  }
  if (newest > 0) return newest;
  if (job == "latest" && newest_made > 0) {
    return absl::NotFoundError(absl::StrCat(
        "no job latest: those there are `troupe verify` made for itself; name "
        "one by its number, as ",
        newest_made));
  }
  if (list.jobs().empty()) {
    return absl::NotFoundError(
        absl::StrCat("no job ", job, ": this cluster has had none"));
  }
  return absl::NotFoundError(absl::StrCat(
      "no job is called ", job, "; troupe jobs lists those there are"));
}

}  // namespace troupe
