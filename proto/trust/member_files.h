// What a member of a cluster shows to others and knows them by, as three PEM
// files in a directory of its own (0700, files 0600):
//
//   DIR/authority.pem     whose certificates it believes; may hold several
//   DIR/certificate.pem   its own, and those between it and its authority
//   DIR/key.pem           the key of it
//
// `troupe up` and `troupe cluster certificate` make such directories; others
// may be brought, by whatever made them, as long as the certificate has a role
// (peer_role.h).
#ifndef TROUPE_PROTO_TRUST_MEMBER_FILES_H_
#define TROUPE_PROTO_TRUST_MEMBER_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/trust/certificate.h"
#include "proto/trust/peer_role.h"

namespace troupe {

struct MemberFiles {
  std::string authority;
  std::string certificate;
  std::string key;
};

MemberFiles FilesOfMember(const std::string& directory);

// Makes the directory, or puts a new one with these three files in the place of
// the one that is there: all at once, so that nobody reads a key beside
// another's certificate. What else was in it is gone.
absl::Status WriteMemberFiles(const std::string& directory,
                              const KeyAndCertificate& member,
                              absl::string_view authority);

// The errors of CheckCertificate, and those of reading the files, each naming
// the directory and the way out.
absl::Status CheckMemberFiles(const std::string& directory, PeerRole role,
                              absl::Time now);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_MEMBER_FILES_H_
