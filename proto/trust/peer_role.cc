#include "proto/trust/peer_role.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace troupe {
namespace {

constexpr absl::string_view kScheme = "troupe:";

absl::optional<PeerRole> Find(absl::string_view name) {
  for (const PeerRole role : kPeerRoles) {
    if (RoleName(role) == name) return role;
  }
  return absl::nullopt;
}

}  // namespace

absl::string_view RoleName(PeerRole role) {
  switch (role) {
    case PeerRole::kClient:
      return "client";
    case PeerRole::kWorker:
      return "worker";
    case PeerRole::kScheduler:
      return "scheduler";
  }
  return "";
}

std::string RoleUri(PeerRole role) {
  return absl::StrCat(kScheme, RoleName(role));
}

absl::StatusOr<PeerRole> RoleNamed(absl::string_view name) {
  const absl::optional<PeerRole> role = Find(name);
  if (role.has_value()) return *role;
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is no role; there are client, worker and scheduler"));
}

absl::optional<PeerRole> RoleOfUri(absl::string_view uri) {
  if (!absl::ConsumePrefix(&uri, kScheme)) return absl::nullopt;
  return Find(uri);
}

}  // namespace troupe
