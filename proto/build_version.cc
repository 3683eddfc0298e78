#include "proto/build_version.h"

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "proto/protocol_version.h"

namespace troupe {
namespace {

constexpr size_t kNameBytesMax = 100;

std::string Range(const BuildVersion& build) {
  if (build.oldest_protocol() == build.protocol()) {
    return absl::StrCat("version ", build.protocol());
  }
  return absl::StrCat("versions ", build.oldest_protocol(), " to ",
                      build.protocol());
}

std::string Name(const BuildVersion& build) {
  return build.build().empty() ? "an unnamed build"
                               : OneLine(build.build(), kNameBytesMax);
}

}  // namespace

BuildVersion ThisBuild() {
  BuildVersion build;
  build.set_build(kBuildName);
  build.set_protocol(kProtocolVersion);
  build.set_oldest_protocol(kOldestProtocolVersion);
  return build;
}

std::string DescribeBuild(const BuildVersion& build) {
  return absl::StrCat(Name(build), " (protocol ", build.protocol(), ")");
}

absl::Status CheckCanTalk(absl::string_view who, const BuildVersion& peer) {
  const BuildVersion here = ThisBuild();
  if (peer.protocol() >= here.oldest_protocol() &&
      here.protocol() >= peer.oldest_protocol()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      who, " is ", Name(peer), " and speaks protocol ", Range(peer),
      "; this scheduler is ", Name(here), " and speaks protocol ", Range(here),
      "; install one build on both (the ",
      peer.protocol() < here.protocol() ? "former" : "latter", " is older)"));
}

}  // namespace troupe
