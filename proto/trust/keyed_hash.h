// HMAC with SHA-256 (RFC 2104), of OpenSSL: only holders of the secret can make
// it.
#ifndef TROUPE_PROTO_TRUST_KEYED_HASH_H_
#define TROUPE_PROTO_TRUST_KEYED_HASH_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

inline constexpr size_t kKeyedHashBytes = 32;

// kKeyedHashBytes.
std::string KeyedHash(absl::string_view secret, absl::string_view message);

// As many bytes that nobody guesses, for a message that was never hashed
// before.
std::string NewNonce(size_t bytes);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_KEYED_HASH_H_
