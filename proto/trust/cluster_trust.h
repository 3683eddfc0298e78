// The trust of one cluster: its authority, and a certificate for each role on
// the machine where `troupe up` runs. All in one directory of mode 0700:
//
//   DIR/trust/authority/certificate.pem, key.pem   anyone with the key controls
//                                                   the cluster
//   DIR/trust/scheduler/, worker/, client/          member_files.h; the
//                                                   worker's is for the names
//                                                   that `troupe up` gives,
//                                                   "worker-3", and those that
//                                                   begin with the host's
//   DIR/trust/page.token                            of the scheduler's page
//
// Made where it is missing, renewed where little of its time is left, and
// otherwise left alone, so that those that have certificates keep them.
#ifndef TROUPE_PROTO_TRUST_CLUSTER_TRUST_H_
#define TROUPE_PROTO_TRUST_CLUSTER_TRUST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/trust/peer_role.h"

namespace troupe {

// DIR/trust/worker.
std::string MemberDirectory(const std::string& dir, PeerRole role);

// DIR/trust/page.token: what the status page wants; the scheduler makes it.
std::string PageTokenFile(const std::string& dir);

// How much of a certificate's time may be left before it is made anew.
inline constexpr absl::Duration kRenewBefore = absl::Hours(24 * 30);

// All of the above. Errors name the file and what is wrong with it. Of two
// processes that do so at a time, the second waits.
absl::Status EnsureClusterTrust(const std::string& dir, absl::Time now);

struct MemberRequest {
  PeerRole role = PeerRole::kWorker;
  std::vector<std::string> hosts;  // where it runs: names, addresses
  // That a worker may register under, as CheckWorkerNames has them; none: the
  // first of `hosts`, and all names that begin with it and '-'. For workers
  // only.
  std::vector<std::string> worker_names;
  std::string out;                 // the directory that is made
};

// One for another host, from DIR's authority, which is made where it is
// missing. Where `out` is there, its files are replaced. InvalidArgument: a
// host is none, or a name is none that a worker may have.
absl::Status IssueMember(const std::string& dir, const MemberRequest& request,
                         absl::Time now);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_CLUSTER_TRUST_H_
