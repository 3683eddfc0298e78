// A certificate whose time runs out is said in time: by the daemons in their
// logs, by the commands of people, and on the status page.
//
//   const CertificateWatch watch(trust, PeerRole::kWorker);   // of a daemon
#ifndef TROUPE_PROTO_TRUST_CERTIFICATE_END_H_
#define TROUPE_PROTO_TRUST_CERTIFICATE_END_H_

#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/trust/peer_role.h"
#include "proto/trust/peer_trust.h"

namespace troupe {

// "the certificate in DIR ends in 12 days, ...", and what to do; empty where
// there are 30 days or more, where there is none (--insecure), or where it
// cannot be read, which others complain of.
std::string CertificateEndsSoon(const PeerTrust& trust, PeerRole role,
                                absl::Time now);

// Warns in the log when it is made, and every `pause` as long as it lives.
class CertificateWatch {
 public:
  CertificateWatch(const PeerTrust& trust, PeerRole role,
                   absl::Duration pause = absl::Hours(24));
  ~CertificateWatch();

 private:
  void Watch(absl::Duration pause);

  const PeerTrust trust_;
  const PeerRole role_;
  absl::Notification over_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_CERTIFICATE_END_H_
