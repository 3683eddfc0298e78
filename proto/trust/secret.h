// Secrets that are numbers nobody guesses, and what is compared with them.
#ifndef TROUPE_PROTO_TRUST_SECRET_H_
#define TROUPE_PROTO_TRUST_SECRET_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

inline constexpr size_t kSecretDigits = 64;

// 256 bits of OpenSSL's generator, as kSecretDigits hexadecimal digits.
std::string NewSecret();

// In a time that does not depend on where they differ.
bool SameSecret(absl::string_view a, absl::string_view b);

// The secret in a file of mode 0600 in a directory of mode 0700, both of which
// are made where they are missing. The errors of private_file.h; DataLoss where
// the file has no secret.
absl::StatusOr<std::string> EnsureSecretFile(const std::string& path);

// "sha256-...", as content policies name a text (W3C CSP 3, 2.3.1).
std::string Sha256ForPolicy(absl::string_view text);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_SECRET_H_
