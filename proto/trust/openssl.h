// OpenSSL's objects with owners, and its complaints as one of ours.
#ifndef TROUPE_PROTO_TRUST_OPENSSL_H_
#define TROUPE_PROTO_TRUST_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe {

template <auto kFree>
struct OpenSslFree {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using OwnedBio = std::unique_ptr<BIO, OpenSslFree<BIO_free_all>>;
using OwnedBignum = std::unique_ptr<BIGNUM, OpenSslFree<BN_free>>;
using OwnedCertificate = std::unique_ptr<X509, OpenSslFree<X509_free>>;
using OwnedExtension =
    std::unique_ptr<X509_EXTENSION, OpenSslFree<X509_EXTENSION_free>>;
using OwnedKey = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>>;
using OwnedNames =
    std::unique_ptr<GENERAL_NAMES, OpenSslFree<GENERAL_NAMES_free>>;
using OwnedStore = std::unique_ptr<X509_STORE, OpenSslFree<X509_STORE_free>>;
using OwnedStoreContext =
    std::unique_ptr<X509_STORE_CTX, OpenSslFree<X509_STORE_CTX_free>>;

// Internal: "<what>: <OpenSSL's newest complaint>". Empties its queue.
absl::Status OpenSslError(absl::string_view what);

// The bytes are borrowed.
OwnedBio ReadingFrom(absl::string_view bytes);
std::string BytesOf(const OwnedBio& bio);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_OPENSSL_H_
