// How a process proves its identity to its peers, and knows them: by
// certificates, or, where a person said so, not at all.
#ifndef TROUPE_PROTO_TRUST_PEER_TRUST_H_
#define TROUPE_PROTO_TRUST_PEER_TRUST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/trust/peer_role.h"

namespace troupe {

struct PeerTrust {
  std::string certificates;  // a directory of member_files.h
  // How often --insecure was said: no TLS, and everybody may do everything.
  // Once is enough on loopback only.
  int insecure = 0;
};

// Whether a member of this role can use it to serve on, or to connect to,
// `address` (HOST:PORT). InvalidArgument: --insecure was not said often enough,
// or neither it nor --certificates was; else the errors of CheckMemberFiles.
absl::Status CheckTrust(const PeerTrust& trust, PeerRole role,
                        absl::string_view address, absl::Time now);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_PEER_TRUST_H_
