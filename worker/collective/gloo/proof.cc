#include "worker/collective/gloo/proof.h"

#include "absl/strings/str_cat.h"
#include "proto/trust/keyed_hash.h"
#include "proto/trust/secret.h"

namespace troupe {
namespace {

// The group's name, the one part of any length, comes last.
std::string Message(int from, int to, absl::string_view nonce,
                    absl::string_view peers_nonce, const std::string& group) {
  return absl::StrCat("troupe data ", from, " ", to, " ", nonce, peers_nonce,
                      group);
}

}  // namespace

Proof::Proof(const Places& places, const std::string& secret)
    : places_(places), secret_(secret), nonce_(NewNonce(kBytes)) {
  static_assert(kBytes == kKeyedHashBytes);
}

std::string Proof::Answer(absl::string_view peers_nonce) const {
  return KeyedHash(secret_, Message(places_.rank, places_.peer, nonce_,
                                    peers_nonce, places_.group));
}

bool Proof::IsProvenBy(absl::string_view answer,
                       absl::string_view peers_nonce) const {
  return peers_nonce.size() == kBytes &&
         SameSecret(
             answer,
             KeyedHash(secret_, Message(places_.peer, places_.rank, peers_nonce,
                                        nonce_, places_.group)));
}

}  // namespace troupe
