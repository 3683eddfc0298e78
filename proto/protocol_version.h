// The version of the conversation between scheduler and workers: of
// worker.proto and of all that an assignment has. Raise it where the two must
// be of one build.
#ifndef TROUPE_PROTO_PROTOCOL_VERSION_H_
#define TROUPE_PROTO_PROTOCOL_VERSION_H_

#include <cstdint>

namespace troupe {

inline constexpr int32_t kProtocolVersion = 16;

}  // namespace troupe

#endif  // TROUPE_PROTO_PROTOCOL_VERSION_H_
