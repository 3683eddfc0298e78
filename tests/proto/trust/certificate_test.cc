#include "proto/trust/certificate.h"

#include "absl/strings/match.h"
#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// A worker's by its name (URI:troupe:worker), a server's by its extended key
// usage; signed by itself, for a hundred years. Made for this test by
//
//   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes
//     -days 36500 -subj "/O=Troupe/CN=brought" -keyout key.pem -out brought.pem
//     -addext subjectAltName=URI:troupe:worker
//     -addext extendedKeyUsage=serverAuth
//     -addext basicConstraints=critical,CA:FALSE
//     -addext keyUsage=critical,digitalSignature
constexpr char kServersKey[] = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgzsgK86WYZPWi80pb
FQncKjD5V29sHDX/kvvcMI3jqt2hRANCAAQlXNCINqrfmniHLHGgYg0g7OsimE3A
IrAew1+c9Tk8i9+isVItQuzay8D58AUyHjuGNMjOtLlfj4iRhlbzh6+e
-----END PRIVATE KEY-----
)";
constexpr char kServersCertificate[] = R"(-----BEGIN CERTIFICATE-----
MIIB2zCCAYGgAwIBAgIUBynhJW19KwIeQmFyxzKr9jYyIyYwCgYIKoZIzj0EAwIw
IzEPMA0GA1UECgwGVHJvdXBlMRAwDgYDVQQDDAdicm91Z2h0MCAXDTI2MTEyNTEz
NDcxOVoYDzIxMjYxMTAxMTM0NzE5WjAjMQ8wDQYDVQQKDAZUcm91cGUxEDAOBgNV
BAMMB2Jyb3VnaHQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQlXNCINqrfmniH
LHGgYg0g7OsimE3AIrAew1+c9Tk8i9+isVItQuzay8D58AUyHjuGNMjOtLlfj4iR
hlbzh6+eo4GQMIGNMB0GA1UdDgQWBBQiwaita+7OV+o9sIjXqnezSCbXrDAfBgNV
HSMEGDAWgBQiwaita+7OV+o9sIjXqnezSCbXrDAYBgNVHREEETAPhg10cm91cGU6
d29ya2VyMBMGA1UdJQQMMAoGCCsGAQUFBwMBMAwGA1UdEwEB/wQCMAAwDgYDVR0P
AQH/BAQDAgeAMAoGCCqGSM49BAMCA0gAMEUCIB+3+LmqqcU0b3fnKwO2ukVOUvtF
I89JoWMmnervhj5UAiEAuzw8HPycMFytZv6tgXskUm9FFpUUZEUZ3+n+HB2XNRI=
-----END CERTIFICATE-----
)";

class CertificateTest : public testing::Test {
 protected:
  KeyAndCertificate Issue(PeerRole role) const {
    return IssueCertificate(authority_, {.role = role,
                                         .hosts = {"ada", "10.0.0.7", "::1"},
                                         .from = now_})
        .value();
  }

  const absl::Time now_ = absl::Now();
  const KeyAndCertificate authority_ = MakeAuthority(now_).value();
};

TEST_F(CertificateTest, IsGoodForItsRoleOnly) {
  for (const PeerRole has : kPeerRoles) {
    const KeyAndCertificate member = Issue(has);
    for (const PeerRole wanted : kPeerRoles) {
      const absl::Status status =
          CheckCertificate(member, authority_.certificate, wanted, now_);
      EXPECT_EQ(status.ok(), has == wanted) << status;
      if (has == wanted) continue;
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), RoleUri(wanted)));
    }
  }
}

// One that somebody brings: the role is there, and no peer would take it.
TEST_F(CertificateTest, IsGoodForWhatItMayBeUsedForOnly) {
  const absl::Time now =
      absl::FromCivil(absl::CivilDay(2030, 1, 1), absl::UTCTimeZone());
  const absl::Status status =
      CheckCertificate({.key = kServersKey, .certificate = kServersCertificate},
                       kServersCertificate, PeerRole::kWorker, now);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "lacks digitalSignature"))
      << status;
}

TEST_F(CertificateTest, IsGoodInItsTimeOnly) {
  const KeyAndCertificate member = Issue(PeerRole::kWorker);
  const auto at = [&](absl::Duration after) {
    return CheckCertificate(member, authority_.certificate, PeerRole::kWorker,
                            now_ + after);
  };
  const absl::Duration valid = CertificateSubject::kMemberValid;
  EXPECT_TRUE(at(-absl::Minutes(59)).ok()) << "clocks differ";
  EXPECT_TRUE(at(valid - absl::Minutes(1)).ok());
  for (const absl::Duration wrong :
       {-absl::Minutes(61), valid + absl::Minutes(1)}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(at(wrong))) << at(wrong);
    EXPECT_TRUE(absl::StrContains(at(wrong).message(), "is valid from"));
  }
}

TEST_F(CertificateTest, EndsWithItsAuthority) {
  const absl::Time late = now_ + absl::Hours(24 * 3600);
  const KeyAndCertificate member =
      IssueCertificate(authority_, {.role = PeerRole::kClient, .from = late})
          .value();
  EXPECT_EQ(ValidUntil(member.certificate).value(),
            ValidUntil(authority_.certificate).value());
}

TEST_F(CertificateTest, AnotherAuthorityDoesNotVouch) {
  const KeyAndCertificate other = MakeAuthority(now_).value();
  const KeyAndCertificate member = Issue(PeerRole::kWorker);
  const absl::Status status =
      CheckCertificate(member, other.certificate, PeerRole::kWorker, now_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "does not vouch"));
  // While authorities are exchanged, a file has both.
  EXPECT_TRUE(CheckCertificate(member,
                               other.certificate + authority_.certificate,
                               PeerRole::kWorker, now_)
                  .ok());
}

TEST_F(CertificateTest, AKeyOfAnotherIsRefused) {
  KeyAndCertificate mixed = Issue(PeerRole::kWorker);
  mixed.key = Issue(PeerRole::kWorker).key;
  const absl::Status status =
      CheckCertificate(mixed, authority_.certificate, PeerRole::kWorker, now_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

// A member's certificate signs nothing, so nobody in the cluster makes another.
TEST_F(CertificateTest, AMemberIsNoAuthority) {
  const KeyAndCertificate member = Issue(PeerRole::kScheduler);
  KeyAndCertificate forged =
      IssueCertificate(member, {.role = PeerRole::kClient, .from = now_})
          .value();
  forged.certificate += member.certificate;
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckCertificate(
      forged, authority_.certificate, PeerRole::kClient, now_)));
}

TEST_F(CertificateTest, HostsAreNamesOrAddresses) {
  for (const char* bad :
       {"a b", "ada,URI:troupe:scheduler", "", "ada\nbob", "10.0.0.0/8"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        IssueCertificate(authority_, {.hosts = {bad}, .from = now_}).status()))
        << bad;
  }
}

TEST_F(CertificateTest, GarbageIsNoPem) {
  const KeyAndCertificate member = Issue(PeerRole::kWorker);
  const auto check = [&](const KeyAndCertificate& m, const std::string& by) {
    return CheckCertificate(m, by, PeerRole::kWorker, now_);
  };
  for (const std::string& bad :
       {std::string(), std::string("x"), member.certificate.substr(0, 200)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        check({.key = bad, .certificate = member.certificate},
              authority_.certificate)));
    EXPECT_TRUE(absl::IsInvalidArgument(check(
        {.key = member.key, .certificate = bad}, authority_.certificate)));
    EXPECT_TRUE(absl::IsInvalidArgument(check(member, bad)));
    EXPECT_TRUE(absl::IsInvalidArgument(
        IssueCertificate({.key = bad, .certificate = bad}, {}).status()));
  }
}

}  // namespace
}  // namespace troupe
