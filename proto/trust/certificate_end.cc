#include "proto/trust/certificate_end.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/log.h"
#include "proto/trust/certificate.h"
#include "proto/trust/cluster_trust.h"
#include "proto/trust/member_files.h"
#include "proto/trust/private_file.h"

namespace troupe {
namespace {

std::string InDays(absl::Duration left) {
  const int64_t days = absl::ToInt64Hours(left) / 24;
  if (left < absl::ZeroDuration()) return "has ended";
  if (days == 0) return "ends today";
  return absl::StrCat("ends in ", days, days == 1 ? " day" : " days");
}

}  // namespace

std::string CertificateEndsSoon(const PeerTrust& trust, PeerRole role,
                                absl::Time now) {
  if (trust.insecure > 0 || trust.certificates.empty()) return "";
  const absl::StatusOr<std::string> certificate =
      ReadSmallFile(FilesOfMember(trust.certificates).certificate);
  if (!certificate.ok()) return "";
  const absl::StatusOr<absl::Time> until = ValidUntil(*certificate);
  if (!until.ok() || *until - now >= kRenewBefore) return "";
  return absl::StrCat(
      "the certificate in ", trust.certificates, " ", InDays(*until - now),
      " (", absl::FormatTime("%Y-%m-%d %H:%M UTC", *until, absl::UTCTimeZone()),
      "), and nobody believes it then; `troupe up` makes those of its own "
      "cluster anew, also while it runs; for another host: troupe cluster "
      "certificate HOST --role ",
      RoleName(role), ", and put its three files in the place of these");
}

CertificateWatch::CertificateWatch(const PeerTrust& trust, PeerRole role,
                                   absl::Duration pause)
    : trust_(trust), role_(role), thread_([this, pause] { Watch(pause); }) {}

CertificateWatch::~CertificateWatch() {
  over_.Notify();
  thread_.join();
}

void CertificateWatch::Watch(absl::Duration pause) {
  do {
    const std::string words = CertificateEndsSoon(trust_, role_, absl::Now());
    if (!words.empty()) LogWarning(words);
  } while (!over_.WaitForNotificationWithTimeout(pause));
}

}  // namespace troupe
