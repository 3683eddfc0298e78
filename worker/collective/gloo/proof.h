// How the two ends of a data connection prove to each other, before the first
// byte of a tensor, that both know the secret of their group: one that the
// scheduler's store hands to the members of this attempt only (introduce.h).
//
//   A -> B   nonce a, 32 random bytes          B -> A   nonce b
//   A -> B   HMAC(secret, "troupe data", A, B, a, b, group)
//   B -> A   HMAC(secret, "troupe data", B, A, b, a, group)
//
// Each side's nonce makes the other's hash fresh, and the places in the group,
// the sender's first, keep one from being sent back, or to another rank. A rank
// of an earlier attempt has another secret. What comes after the proof is
// neither encrypted nor signed (docs/security.md).
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_PROOF_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_PROOF_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

class Proof {
 public:
  struct Places {
    std::string group;
    int rank = 0;  // this side's index in the group
    int peer = 0;
  };
  Proof(const Places& places, const std::string& secret);

  // Of a nonce and of a hash.
  static constexpr size_t kBytes = 32;

  // What this side sends first, and then, to the peer's nonce.
  const std::string& nonce() const { return nonce_; }
  std::string Answer(absl::string_view peers_nonce) const;

  // Whether the peer, whose nonce was this, knows the secret.
  bool IsProvenBy(absl::string_view answer,
                  absl::string_view peers_nonce) const;

 private:
  const Places places_;
  const std::string secret_;
  const std::string nonce_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_PROOF_H_
