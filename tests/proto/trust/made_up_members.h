// Members of a made-up cluster, for tests of which peers are let in: those that
// belong to it, and those that only look so.
#ifndef TROUPE_TESTS_PROTO_TRUST_MADE_UP_MEMBERS_H_
#define TROUPE_TESTS_PROTO_TRUST_MADE_UP_MEMBERS_H_

#include <string>

#include "absl/time/time.h"
#include "proto/trust/certificate.h"
#include "proto/trust/peer_role.h"
#include "proto/trust/peer_trust.h"

namespace troupe {

class MadeUpMembers {
 public:
  // In a directory of the test's with this name.
  explicit MadeUpMembers(const std::string& name);

  // A worker may register under every name.
  PeerTrust Member(PeerRole role) const;
  // Of a worker whose certificate says no name.
  PeerTrust UnnamedWorker() const;
  // Of a worker that may register under these names only.
  PeerTrust WorkerNamed(const std::vector<std::string>& names) const;
  // Whose time is over.
  PeerTrust Expired(PeerRole role) const;
  // Whose time is over in so long.
  PeerTrust Ending(PeerRole role, absl::Duration left) const;
  // Believes our authority, but is of another.
  PeerTrust Foreign(PeerRole role) const;

  const std::string& dir() const { return dir_; }

 private:
  PeerTrust Write(const std::string& name, const KeyAndCertificate& by,
                  const CertificateSubject& subject) const;

  const std::string dir_;
  KeyAndCertificate authority_;
  KeyAndCertificate other_authority_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_TRUST_MADE_UP_MEMBERS_H_
