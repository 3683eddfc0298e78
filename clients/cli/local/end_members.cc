#include "clients/cli/local/end_members.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cli/local/process.h"
#include "clients/cpp/client.h"
#include "clients/cpp/cluster_commands.h"
#include "clients/cpp/find_scheduler.h"
#include "proto/base/check.h"
#include "proto/base/steady_time.h"
#include "proto/trust/cluster_trust.h"
#include "proto/trust/member_files.h"

namespace troupe {
namespace {

const ClusterMember& MemberOf(const ProcessId& process,
                              const std::vector<ClusterMember>& members) {
  const auto found = std::find_if(
      members.begin(), members.end(),
      [&](const ClusterMember& member) { return member.process == process; });
  CHECK(found != members.end());
  return *found;
}

// For a daemon to read its certificate again, which it does every minute.
constexpr absl::Duration kReadAgainMax = absl::Seconds(90);

// What the scheduler of a cluster says of the jobs of its members.
class JobsOfMembers {
 public:
  explicit JobsOfMembers(const std::string& dir) : dir_(dir) {}

  // Whether any of them is busy with a job; the scheduler is as long as anybody
  // is. No where it does not answer; yes as long as it may come to believe a
  // certificate that was made anew.
  bool AnyFor(const std::vector<ClusterMember>& members) {
    if (client_ == nullptr && !Connect()) return SteadyNow() < known_by_;
    const absl::StatusOr<ListWorkersResponse> list = client_->Workers();
    if (!list.ok()) return false;
    return std::any_of(
        list->workers().begin(), list->workers().end(),
        [&](const WorkerStatus& worker) {
          return worker.state() == WorkerStatus::BUSY && worker.job() != 0 &&
                 std::any_of(members.begin(), members.end(),
                             [&](const ClusterMember& member) {
                               return !IsWorker(member) ||
                                      member.process.pid == worker.pid();
                             });
        });
  }

 private:
  bool Connect() {
    const absl::StatusOr<Endpoints> endpoints = ReadEndpoints(dir_);
    if (!endpoints.ok()) return false;
    Renew(endpoints->trust);
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect(endpoints->grpc, {.trust = endpoints->trust});
    if (client.ok()) client_ = *std::move(client);
    return client.ok();
  }

  // Of a cluster that has run for longer than its certificates are good for the
  // scheduler's is over as well; it reads the new one within a minute.
  void Renew(const PeerTrust& trust) {
    const absl::Time now = absl::Now();
    if (trust.insecure > 0 ||
        trust.certificates != MemberDirectory(dir_, PeerRole::kClient) ||
        CheckMemberFiles(trust.certificates, PeerRole::kClient, now).ok()) {
      return;
    }
    if (!EnsureClusterTrust(dir_, now).ok()) return;
    known_by_ = SteadyNow() + kReadAgainMax;
  }

  const std::string dir_;
  std::unique_ptr<Client> client_;
  absl::Time known_by_ = absl::InfinitePast();
};

bool IsOneOf(const ClusterMember& member,
             const std::vector<ClusterMember>& members) {
  return std::find(members.begin(), members.end(), member) != members.end();
}

// `processes` and `members` are those that are left, in one order.
absl::Status Complaint(const std::vector<EndOutcome::Left>& processes,
                       const std::vector<ClusterMember>& members,
                       const std::string& dir) {
  if (members.empty()) return absl::OkStatus();
  std::vector<std::string> whom;
  bool is_refused = false;
  for (size_t i = 0; i < members.size(); ++i) {
    whom.push_back(absl::StrCat(members[i].name, " (process ",
                                members[i].process.pid,
                                "): ", processes[i].why));
    is_refused = is_refused || processes[i].refused;
  }
  const std::string what =
      absl::StrCat("cannot end ", absl::StrJoin(whom, ", "), "; ");
  if (is_refused) {
    return absl::PermissionDeniedError(absl::StrCat(
        what, "end them as the user who started them: ", DownCommand(dir)));
  }
  return absl::UnavailableError(absl::StrCat(
      what, "they wait for a disk or a device and are gone when that answers; ",
      "then: ", DownCommand(dir)));
}

}  // namespace

EndedMembers EndMembers(const std::vector<ClusterMember>& members,
                        const EndMembersOptions& options) {
  std::vector<ProcessId> workers;
  std::vector<ProcessId> schedulers;
  for (const ClusterMember& member : members) {
    (IsWorker(member) ? workers : schedulers).push_back(member.process);
  }
  const auto members_of = [&](const std::vector<ProcessId>& processes) {
    std::vector<ClusterMember> found;
    for (const ProcessId& process : processes) {
      found.push_back(MemberOf(process, members));
    }
    return found;
  };
  JobsOfMembers jobs(options.dir);
  EndOptions end = {.after = options.after,
                    .hurried = options.hurried,
                    .signal = options.signal};
  if (!options.dir.empty()) {
    end.busy = [&](const std::vector<ProcessId>& left) {
      const bool is_hurried = options.hurried != nullptr && options.hurried();
      return !is_hurried && jobs.AnyFor(members_of(left));
    };
  }
  if (options.news != nullptr) {
    end.waits = [&](const std::vector<ProcessId>& left, absl::Duration grace) {
      std::vector<std::string> names;
      for (const ClusterMember& member : members_of(left)) {
        names.push_back(member.name);
      }
      options.news(names, grace);
    };
  }
  EndedMembers ended;
  std::vector<EndOutcome::Left> left;
  // A scheduler that outlives workers sees each of them leave.
  for (const bool is_workers : {true, false}) {
    end.grace = is_workers ? options.worker_grace : options.scheduler_grace;
    // It writes down what it knows, which is nothing to wait for.
    if (!is_workers) end.hurried = nullptr;
    const EndOutcome outcome =
        EndProcesses(is_workers ? workers : schedulers, end);
    for (const ClusterMember& member : members_of(outcome.killed)) {
      ended.killed.push_back(member.name);
    }
    left.insert(left.end(), outcome.left.begin(), outcome.left.end());
  }
  for (const EndOutcome::Left& one : left) {
    ended.left.push_back(MemberOf(one.process, members));
  }
  ended.complaint = Complaint(left, ended.left, options.dir);
  return ended;
}

absl::Status ForgetMembers(const std::string& dir,
                           const std::vector<ClusterMember>& ended,
                           const std::vector<ClusterMember>& left) {
  return ChangeClusterFile(dir, [&](std::vector<ClusterMember>& members) {
    EraseIf(members, [&](const ClusterMember& member) {
      return IsOneOf(member, ended) && !IsOneOf(member, left);
    });
  });
}

}  // namespace troupe
