// Certificates of a cluster's members, and of the authority that signs them.
// All cryptography is OpenSSL's: keys are on P-256, signatures ECDSA with
// SHA-256.
//
//   ASSIGN_OR_RETURN(KeyAndCertificate authority, MakeAuthority(now));
//   ASSIGN_OR_RETURN(KeyAndCertificate worker,
//                    IssueCertificate(authority, {.role = PeerRole::kWorker,
//                                                 .hosts = {"10.0.0.7"},
//                                                 .from = now}));
#ifndef TROUPE_PROTO_TRUST_CERTIFICATE_H_
#define TROUPE_PROTO_TRUST_CERTIFICATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/trust/peer_role.h"

namespace troupe {

// Both PEM.
struct KeyAndCertificate {
  std::string key;
  std::string certificate;
};

struct CertificateSubject {
  PeerRole role = PeerRole::kClient;
  // Names and IP addresses; the first is the common name.
  std::vector<std::string> hosts;
  // That a worker may register under (worker_names.h); none: none.
  std::vector<std::string> worker_names;
  absl::Time from;
  absl::Duration valid = kMemberValid;

  static constexpr absl::Duration kMemberValid = absl::Hours(24 * 365);
};

// Valid for ten years from an hour before `now`: clocks differ.
absl::StatusOr<KeyAndCertificate> MakeAuthority(absl::Time now);

// Valid from an hour before `from`, and never for longer than its authority.
// InvalidArgument: a host is neither a name nor an address, a worker's name is
// none (CheckWorkerNames), or the authority's PEM is none.
absl::StatusOr<KeyAndCertificate> IssueCertificate(
    const KeyAndCertificate& authority, const CertificateSubject& subject);

// The end of its time. InvalidArgument: no PEM of a certificate.
absl::StatusOr<absl::Time> ValidUntil(absl::string_view certificate);

// CertificateSubject.worker_names. InvalidArgument: no PEM of a certificate.
absl::StatusOr<std::vector<std::string>> WorkerNamesIn(
    absl::string_view certificate);

// What a peer will find wrong with it, said before one is asked.
// FailedPrecondition: the key is not the certificate's, `authority` did not
// sign it, it is not valid at `now`, has not this role, or is not for what the
// role does with it (serverAuth, clientAuth). InvalidArgument: no
// PEM.
absl::Status CheckCertificate(const KeyAndCertificate& member,
                              absl::string_view authority, PeerRole role,
                              absl::Time now);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_CERTIFICATE_H_
