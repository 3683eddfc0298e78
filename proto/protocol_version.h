// The versions of the conversation between scheduler and workers: of
// worker.proto and of all that an assignment has. Raise kProtocolVersion where
// the two must be of one build, a field that one of them requires of the other
// among that, and kOldestProtocolVersion where the older version is not
// understood any more; and record the version that was before
// (tests/compatibility/README.md). A test fails where a message was removed or
// changed and the number was not.
#ifndef TROUPE_PROTO_PROTOCOL_VERSION_H_
#define TROUPE_PROTO_PROTOCOL_VERSION_H_

#include <cstdint>

namespace troupe {

inline constexpr int32_t kProtocolVersion = 24;
// That this build can hold a conversation in, and whose stored plans it reads.
inline constexpr int32_t kOldestProtocolVersion = 24;
// For people.
inline constexpr char kBuildName[] = "troupe 0.24";

}  // namespace troupe

#endif  // TROUPE_PROTO_PROTOCOL_VERSION_H_
