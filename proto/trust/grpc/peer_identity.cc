#include "proto/trust/grpc/peer_identity.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpc/grpc_security_constants.h"
#include "proto/base/one_line.h"
#include "proto/trust/peer_role.h"
#include "proto/trust/worker_names.h"

namespace troupe {
namespace {

constexpr size_t kNameBytesMax = 200;

absl::string_view View(const grpc::string_ref& text) {
  return {text.data(), text.size()};
}

}  // namespace

PeerIdentity IdentityOf(const grpc::AuthContext& context) {
  PeerIdentity identity = {.has_certificate = context.IsPeerAuthenticated()};
  for (const grpc::string_ref& text :
       context.FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME)) {
    absl::string_view name = View(text);
    for (const PeerRole role : kPeerRoles) {
      if (absl::ConsumePrefix(&name, absl::StrCat(RoleName(role), " "))) break;
    }
    identity.name = OneLine(name, kNameBytesMax);
  }
  for (const grpc::string_ref& uri :
       context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    const absl::optional<std::string> names = WorkerNamesOfUri(View(uri));
    if (names.has_value()) identity.worker_names.push_back(*names);
  }
  return identity;
}

}  // namespace troupe
