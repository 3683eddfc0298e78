#include "proto/trust/keyed_hash.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "proto/base/check.h"

namespace troupe {

std::string KeyedHash(absl::string_view secret, absl::string_view message) {
  std::string hash(kKeyedHashBytes, '\0');
  unsigned int size = 0;
  CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const unsigned char*>(message.data()),
             message.size(), reinterpret_cast<unsigned char*>(hash.data()),
             &size) != nullptr &&
        size == kKeyedHashBytes)
      << "OpenSSL has no HMAC with SHA-256";
  return hash;
}

std::string NewNonce(size_t bytes) {
  std::string nonce(bytes, '\0');
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()),
                   static_cast<int>(bytes)) == 1)
      << "OpenSSL has no random numbers";
  return nonce;
}

}  // namespace troupe
