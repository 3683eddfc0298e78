#include <openssl/ec.h>
#include <openssl/pem.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/trust/certificate.h"
#include "proto/trust/openssl.h"
#include "proto/trust/worker_names.h"

namespace troupe {
namespace {

constexpr absl::Duration kClocksDiffer = absl::Hours(1);
constexpr absl::Duration kAuthorityValid = absl::Hours(24 * 3652);
constexpr int kSerialBits = 159;  // at most 20 octets (RFC 5280, 4.1.2.2)
constexpr size_t kHostBytesMax = 253;
constexpr size_t kCommonNameMax = 64;

bool IsHostName(const std::string& host) {
  return !host.empty() && host.size() <= kHostBytesMax &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '.' || c == '-' || c == '_';
         });
}

// Takes `value` over.
absl::Status AddName(GENERAL_NAMES* names, int kind, ASN1_STRING* value) {
  GENERAL_NAME* name = GENERAL_NAME_new();
  if (name == nullptr || value == nullptr) return OpenSslError("a name");
  GENERAL_NAME_set0_value(name, kind, value);
  if (sk_GENERAL_NAME_push(names, name) == 0) return OpenSslError("a name");
  return absl::OkStatus();
}

ASN1_STRING* Ia5(const std::string& text) {
  ASN1_IA5STRING* value = ASN1_IA5STRING_new();
  if (value != nullptr) {
    ASN1_STRING_set(value, text.data(), static_cast<int>(text.size()));
  }
  return value;
}

// The role's URI, the hosts, then the URIs of a worker's names.
absl::StatusOr<OwnedNames> AlternativeNames(const CertificateSubject& subject) {
  OwnedNames names(GENERAL_NAMES_new());
  RETURN_IF_ERROR(AddName(names.get(), GEN_URI, Ia5(RoleUri(subject.role))));
  for (const std::string& host : subject.hosts) {
    ASN1_OCTET_STRING* const ip = a2i_IPADDRESS(host.c_str());
    if (ip != nullptr) {
      RETURN_IF_ERROR(AddName(names.get(), GEN_IPADD, ip));
    } else if (IsHostName(host)) {
      RETURN_IF_ERROR(AddName(names.get(), GEN_DNS, Ia5(host)));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", host, "\" is neither a host's name nor an IP address"));
    }
  }
  for (const std::string& worker : subject.worker_names) {
    RETURN_IF_ERROR(CheckWorkerNames(worker));
    RETURN_IF_ERROR(AddName(names.get(), GEN_URI, Ia5(WorkerNamesUri(worker))));
  }
  return names;
}

// A certificate that says all but its signer, and its key.
struct Draft {
  OwnedKey key;
  OwnedCertificate certificate;
};

absl::Status SetTimes(X509* certificate, absl::Time from, absl::Time until) {
  if (ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(from)) ==
          nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(until)) ==
          nullptr) {
    return OpenSslError("the time of a certificate");
  }
  return absl::OkStatus();
}

absl::StatusOr<Draft> NewDraft(absl::string_view name) {
  Draft draft{OwnedKey(EVP_EC_gen("P-256")), OwnedCertificate(X509_new())};
  const OwnedBignum serial(BN_new());
  X509* const x = draft.certificate.get();
  if (draft.key == nullptr || x == nullptr || serial == nullptr ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) !=
          1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(x)) == nullptr ||
      X509_set_version(x, X509_VERSION_3) != 1 ||
      X509_set_pubkey(x, draft.key.get()) != 1) {
    return OpenSslError("a new certificate");
  }
  const std::string common(name.substr(0, kCommonNameMax));
  const auto add = [x](const char* field, const std::string& text) {
    return X509_NAME_add_entry_by_txt(
        X509_get_subject_name(x), field, MBSTRING_UTF8,
        reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0);
  };
  if (add("O", "Troupe") != 1 || add("CN", common) != 1) {
    return OpenSslError("a certificate's subject");
  }
  return draft;
}

absl::Status Extend(X509* certificate, X509* issuer, int kind,
                    const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const OwnedExtension extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  if (extension == nullptr ||
      X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpenSslError("an extension of a certificate");
  }
  return absl::OkStatus();
}

absl::StatusOr<KeyAndCertificate> SignedBy(EVP_PKEY* authority,
                                           const Draft& draft) {
  if (X509_sign(draft.certificate.get(), authority, EVP_sha256()) == 0) {
    return OpenSslError("signing a certificate");
  }
  const OwnedBio key(BIO_new(BIO_s_mem()));
  const OwnedBio certificate(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(key.get(), draft.key.get(), nullptr,
                                    nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(certificate.get(), draft.certificate.get()) != 1) {
    return OpenSslError("writing a certificate");
  }
  return KeyAndCertificate{.key = BytesOf(key),
                           .certificate = BytesOf(certificate)};
}

}  // namespace

absl::StatusOr<KeyAndCertificate> MakeAuthority(absl::Time now) {
  ASSIGN_OR_RETURN(const Draft draft, NewDraft("Troupe cluster authority"));
  X509* const x = draft.certificate.get();
  RETURN_IF_ERROR(SetTimes(x, now - kClocksDiffer, now + kAuthorityValid));
  if (X509_set_issuer_name(x, X509_get_subject_name(x)) != 1) {
    return OpenSslError("an authority's name");
  }
  RETURN_IF_ERROR(
      Extend(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  RETURN_IF_ERROR(Extend(x, x, NID_key_usage, "critical,keyCertSign,cRLSign"));
  RETURN_IF_ERROR(Extend(x, x, NID_subject_key_identifier, "hash"));
  return SignedBy(draft.key.get(), draft);
}

absl::StatusOr<KeyAndCertificate> IssueCertificate(
    const KeyAndCertificate& authority, const CertificateSubject& subject) {
  const OwnedBio certificate_pem = ReadingFrom(authority.certificate);
  const OwnedBio key_pem = ReadingFrom(authority.key);
  const OwnedCertificate issuer(
      PEM_read_bio_X509(certificate_pem.get(), nullptr, nullptr, nullptr));
  const OwnedKey key(
      PEM_read_bio_PrivateKey(key_pem.get(), nullptr, nullptr, nullptr));
  if (issuer == nullptr || key == nullptr) {
    return absl::InvalidArgumentError(
        OpenSslError("the authority's certificate or key is no PEM").message());
  }
  ASSIGN_OR_RETURN(const absl::Time end, ValidUntil(authority.certificate));
  ASSIGN_OR_RETURN(const OwnedNames names, AlternativeNames(subject));
  ASSIGN_OR_RETURN(
      const Draft draft,
      NewDraft(absl::StrCat(
          RoleName(subject.role),
          subject.hosts.empty() ? "" : absl::StrCat(" ", subject.hosts[0]))));
  X509* const x = draft.certificate.get();
  RETURN_IF_ERROR(SetTimes(x, subject.from - kClocksDiffer,
                           std::min(subject.from + subject.valid, end)));
  if (X509_set_issuer_name(x, X509_get_subject_name(issuer.get())) != 1) {
    return OpenSslError("an issuer's name");
  }
  RETURN_IF_ERROR(
      Extend(x, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(
      Extend(x, issuer.get(), NID_key_usage, "critical,digitalSignature"));
  // A client cannot serve, not even peers that know no roles.
  RETURN_IF_ERROR(Extend(
      x, issuer.get(), NID_ext_key_usage,
      subject.role == PeerRole::kScheduler ? "serverAuth" : "clientAuth"));
  RETURN_IF_ERROR(Extend(x, issuer.get(), NID_subject_key_identifier, "hash"));
  RETURN_IF_ERROR(
      Extend(x, issuer.get(), NID_authority_key_identifier, "keyid"));
  if (X509_add1_ext_i2d(x, NID_subject_alt_name, names.get(), 0,
                        X509V3_ADD_DEFAULT) != 1) {
    return OpenSslError("a certificate's names");
  }
  return SignedBy(key.get(), draft);
}

}  // namespace troupe
