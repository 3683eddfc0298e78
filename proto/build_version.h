// Which build a program is, and which it can talk to: each says so in its first
// message (Register.build) or with each call (kBuildVersionKey), and the
// scheduler refuses those with which it has no version in common.
#ifndef TROUPE_PROTO_BUILD_VERSION_H_
#define TROUPE_PROTO_BUILD_VERSION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/worker.pb.h"

namespace troupe {

// The metadata of a client's call under which its BuildVersion is, serialised.
inline constexpr char kBuildVersionKey[] = "troupe-version-bin";

BuildVersion ThisBuild();

// "troupe 0.21 (protocol 21)"; on one line, whatever its sender put in it.
std::string DescribeBuild(const BuildVersion& build);

// Whether this build and that of `who` ("the worker gpu-7") have a version of
// the protocol in common. FailedPrecondition says which have which, and what to
// do.
absl::Status CheckCanTalk(absl::string_view who, const BuildVersion& peer);

}  // namespace troupe

#endif  // TROUPE_PROTO_BUILD_VERSION_H_
