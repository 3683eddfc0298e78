// Ends members of a local cluster as they would have it: workers first, each
// with the time that it takes to save its job, then the scheduler.
#ifndef TROUPE_CLIENTS_CLI_LOCAL_END_MEMBERS_H_
#define TROUPE_CLIENTS_CLI_LOCAL_END_MEMBERS_H_

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cli/local/cluster_file.h"

namespace troupe {

// Hears, now and then, which members are waited for, and how long they still
// have before they are killed: no end of it while a job of theirs is saved.
using WaitNews =
    std::function<void(const std::vector<std::string>& names, absl::Duration)>;

struct EndMembersOptions {
  WaitNews news = nullptr;
  // Asked often; yes kills the workers that are left at once, and waits for no
  // job. May be null.
  std::function<bool()> hurried = nullptr;
  // The folder of their cluster, whose scheduler is asked whether a member is
  // busy with a job: the time does not begin before that has ended. A job that
  // does not get on is ended by the scheduler. Empty: it is not asked.
  std::string dir;
  absl::Duration worker_grace = absl::Seconds(30);
  absl::Duration scheduler_grace = absl::Seconds(10);
  absl::Duration after = absl::Seconds(10);  // for what is killed to be gone
  std::function<int(pid_t, int)> signal = ::kill;  // for tests
};

// What became of them.
struct EndedMembers {
  std::vector<std::string> killed;  // names
  std::vector<ClusterMember> left;
  // OK where none is left. PermissionDenied where some are not this user's to
  // end, Unavailable where the kernel holds them; it names them, with the way
  // out.
  absl::Status complaint;
};

EndedMembers EndMembers(const std::vector<ClusterMember>& members,
                        const EndMembersOptions& options);

// Takes members that have ended, but for those that are left, out of DIR's
// file. The errors of ChangeClusterFile.
absl::Status ForgetMembers(const std::string& dir,
                           const std::vector<ClusterMember>& ended,
                           const std::vector<ClusterMember>& left);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_END_MEMBERS_H_
