#include "proto/trust/secret.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/trust/private_file.h"
#include "storage/disk/directory.h"

namespace troupe {
namespace {

constexpr size_t kSecretBytes = kSecretDigits / 2;

}  // namespace

std::string NewSecret() {
  std::string bytes(kSecretBytes, '\0');
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                   static_cast<int>(bytes.size())) == 1)
      << "OpenSSL has no random numbers";
  return absl::BytesToHexString(bytes);
}

bool SameSecret(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

absl::StatusOr<std::string> EnsureSecretFile(const std::string& path) {
  RETURN_IF_ERROR(MakePrivateDirectory(ParentDirectory(path)));
  const absl::StatusOr<std::string> there = ReadPrivateFile(path);
  if (there.ok()) {
    const std::string secret(absl::StripAsciiWhitespace(*there));
    if (secret.size() >= kSecretDigits) return secret;
    return absl::DataLossError(absl::StrCat(
        path, " has no secret of ", kSecretDigits,
        " digits; remove it, and another is made at the next start"));
  }
  if (!absl::IsNotFound(there.status())) return there.status();
  const std::string secret = NewSecret();
  RETURN_IF_ERROR(WritePrivateFile(path, secret + "\n"));
  return secret;
}

std::string Sha256ForPolicy(absl::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest);
  return absl::StrCat(
      "sha256-", absl::Base64Escape(absl::string_view(
                     reinterpret_cast<const char*>(digest), sizeof(digest))));
}

}  // namespace troupe
