#include "scheduler/service/caller.h"

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "proto/build_version.h"
#include "proto/trust/grpc/peer_identity.h"

namespace troupe {
namespace {

constexpr size_t kNameBytesMax = 200;

}  // namespace

std::string NameOfCaller(const grpc::CallbackServerContext& context) {
  const std::string name = IdentityOf(*context.auth_context()).name;
  if (!name.empty()) return name;
  const std::string peer = context.peer();  // "ipv4:10.0.0.1:77"
  return OneLine(peer.substr(0, peer.rfind(':')), kNameBytesMax);
}

absl::Status CheckCallersBuild(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto said = metadata.find(kBuildVersionKey);
  if (said == metadata.end()) return absl::OkStatus();
  BuildVersion build;
  if (!build.ParseFromArray(said->second.data(),
                            static_cast<int>(said->second.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat(kBuildVersionKey, ": is not the version of a build"));
  }
  return CheckCanTalk("the client", build);
}

}  // namespace troupe
