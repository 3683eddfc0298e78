// Addresses that only this machine reaches.
#ifndef TROUPE_PROTO_TRUST_LOOPBACK_H_
#define TROUPE_PROTO_TRUST_LOOPBACK_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

// The host of "HOST:PORT", "[::1]:PORT", "HOST" or "::1", without brackets.
std::string HostOf(absl::string_view address);

// Of an address as above: 127.0.0.0/8, ::1, localhost. No name is looked up.
bool IsLoopback(absl::string_view address);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_LOOPBACK_H_
