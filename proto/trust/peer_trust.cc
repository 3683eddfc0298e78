#include "proto/trust/peer_trust.h"

#include "absl/strings/str_cat.h"
#include "proto/trust/loopback.h"
#include "proto/trust/member_files.h"

namespace troupe {

absl::Status CheckTrust(const PeerTrust& trust, PeerRole role,
                        absl::string_view address, absl::Time now) {
  if (trust.insecure > 0) {
    if (trust.insecure > 1 || IsLoopback(address)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "--insecure: ", address, " can be reached from other machines, and ",
        "anyone who reaches it may do everything and read along; give ",
        "--certificates DIR, or say --insecure twice"));
  }
  if (!trust.certificates.empty()) {
    return CheckMemberFiles(trust.certificates, role, now);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "by which certificate do others know this ", RoleName(role),
      "? Give --certificates DIR, as `troupe up` or `troupe cluster ",
      "certificate` made it; or --insecure, on one machine only"));
}

}  // namespace troupe
