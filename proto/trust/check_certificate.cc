#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/trust/certificate.h"
#include "proto/trust/openssl.h"
#include "proto/trust/worker_names.h"

namespace troupe {
namespace {

absl::StatusOr<OwnedCertificate> ReadCertificate(absl::string_view pem,
                                                 absl::string_view what) {
  const OwnedBio bytes = ReadingFrom(pem);
  OwnedCertificate certificate(
      PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(
        OpenSslError(absl::StrCat(what, " is no PEM of a certificate"))
            .message());
  }
  return certificate;
}

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm utc = {};
  ASN1_TIME_to_tm(time, &utc);
  return absl::FromTM(utc, absl::UTCTimeZone());
}

void FreeChain(STACK_OF(X509) * chain) { sk_X509_pop_free(chain, X509_free); }
using Chain = std::unique_ptr<STACK_OF(X509), OpenSslFree<FreeChain>>;

// What is in a certificate's file behind it: those between it and an authority.
Chain ChainBehind(absl::string_view pem) {
  Chain chain(sk_X509_new_null());
  const OwnedBio bytes = ReadingFrom(pem);
  OwnedCertificate first(
      PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
  while (first != nullptr) {
    first.reset(PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
    if (first != nullptr && sk_X509_push(chain.get(), first.get()) > 0) {
      X509_up_ref(first.get());
    }
  }
  ERR_clear_error();
  return chain;
}

// Those of the authority's file, of which there may be several: a new one
// beside the old one while certificates are exchanged.
absl::StatusOr<OwnedStore> StoreOf(absl::string_view authorities) {
  OwnedStore store(X509_STORE_new());
  const OwnedBio bytes = ReadingFrom(authorities);
  int count = 0;
  while (true) {
    const OwnedCertificate authority(
        PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
    if (authority == nullptr) break;
    if (X509_STORE_add_cert(store.get(), authority.get()) != 1) {
      return OpenSslError("an authority's certificate");
    }
    ++count;
  }
  const absl::Status end = OpenSslError("the authority's file has no PEM");
  if (count == 0) return absl::InvalidArgumentError(end.message());
  return store;
}

// The URIs among its subject's alternative names.
std::vector<std::string> UrisOf(X509* certificate) {
  std::vector<std::string> uris;
  const OwnedNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int kind = 0;
    const auto* value = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &kind));
    if (kind != GEN_URI) continue;
    uris.emplace_back(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
        ASN1_STRING_length(value));
  }
  return uris;
}

bool HasRole(X509* certificate, PeerRole role) {
  const std::vector<std::string> uris = UrisOf(certificate);
  return std::any_of(uris.begin(), uris.end(), [&](const std::string& uri) {
    return RoleOfUri(uri) == role;
  });
}

absl::Status CheckTime(const X509* certificate, absl::Time now) {
  const absl::Time from = ToTime(X509_get0_notBefore(certificate));
  const absl::Time until = ToTime(X509_get0_notAfter(certificate));
  if (from <= now && now <= until) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the certificate is valid from ", absl::FormatTime(from),
                   " to ", absl::FormatTime(until), " only"));
}

// A peer's TLS refuses a server with a certificate for clients, and a client
// with one for servers. One that names no use may be used for both.
absl::Status CheckPurpose(X509* certificate, PeerRole role) {
  const bool serves = role == PeerRole::kScheduler;
  const int purpose =
      serves ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  if (X509_check_purpose(certificate, purpose, /*ca=*/0) == 1) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the certificate is not for a ", RoleName(role),
                   " to use: its key usage ", "or extended key usage lacks ",
                   serves ? "digitalSignature or serverAuth"
                          : "digitalSignature or clientAuth"));
}

}  // namespace

absl::StatusOr<absl::Time> ValidUntil(absl::string_view certificate) {
  ASSIGN_OR_RETURN(const OwnedCertificate x,
                   ReadCertificate(certificate, "this"));
  return ToTime(X509_get0_notAfter(x.get()));
}

absl::StatusOr<std::vector<std::string>> WorkerNamesIn(
    absl::string_view certificate) {
  ASSIGN_OR_RETURN(const OwnedCertificate x,
                   ReadCertificate(certificate, "this"));
  std::vector<std::string> all;
  for (const std::string& uri : UrisOf(x.get())) {
    const absl::optional<std::string> names = WorkerNamesOfUri(uri);
    if (names.has_value()) all.push_back(*names);
  }
  return all;
}

absl::Status CheckCertificate(const KeyAndCertificate& member,
                              absl::string_view authority, PeerRole role,
                              absl::Time now) {
  ASSIGN_OR_RETURN(const OwnedCertificate certificate,
                   ReadCertificate(member.certificate, "the certificate"));
  const OwnedBio key_pem = ReadingFrom(member.key);
  const OwnedKey key(
      // An encrypted one is refused: nobody is asked for its passphrase.
      PEM_read_bio_PrivateKey(key_pem.get(), nullptr, nullptr,
                              const_cast<char*>("")));
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        OpenSslError("the key is no PEM of a private key").message());
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::FailedPreconditionError(
        OpenSslError("the key is not that of the certificate").message());
  }
  RETURN_IF_ERROR(CheckTime(certificate.get(), now));
  ASSIGN_OR_RETURN(const OwnedStore store, StoreOf(authority));
  const Chain chain = ChainBehind(member.certificate);
  const OwnedStoreContext context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), certificate.get(),
                          chain.get()) != 1) {
    return OpenSslError("checking a certificate");
  }
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()),
                             absl::ToTimeT(now));
  if (X509_verify_cert(context.get()) != 1) {
    const int error = X509_STORE_CTX_get_error(context.get());
    return absl::FailedPreconditionError(
        absl::StrCat("the authority does not vouch for the certificate: ",
                     X509_verify_cert_error_string(error)));
  }
  if (HasRole(certificate.get(), role)) {
    return CheckPurpose(certificate.get(), role);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the certificate is not that of a ", RoleName(role),
      ": among its subject's alternative names is no URI:", RoleUri(role)));
}

}  // namespace troupe
