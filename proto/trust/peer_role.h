// What a process may do in a cluster. Its certificate says so, as a URI among
// the subject's alternative names: "troupe:worker".
//
//   client     submits jobs, asks, cancels
//   worker     registers, and gets jobs to run
//   scheduler  serves the two
#ifndef TROUPE_PROTO_TRUST_PEER_ROLE_H_
#define TROUPE_PROTO_TRUST_PEER_ROLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace troupe {

enum class PeerRole { kClient, kWorker, kScheduler };

inline constexpr PeerRole kPeerRoles[] = {PeerRole::kClient, PeerRole::kWorker,
                                          PeerRole::kScheduler};

absl::string_view RoleName(PeerRole role);  // "worker"
std::string RoleUri(PeerRole role);         // "troupe:worker"

// InvalidArgument names those there are.
absl::StatusOr<PeerRole> RoleNamed(absl::string_view name);
// Nothing where the URI means no role.
absl::optional<PeerRole> RoleOfUri(absl::string_view uri);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_PEER_ROLE_H_
