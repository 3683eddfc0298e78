// How many files this process may have open. A connection is one, so a daemon
// of a large cluster needs more than the 1,024 that are usual.
#ifndef TROUPE_PROTO_BASE_FILE_LIMIT_H_
#define TROUPE_PROTO_BASE_FILE_LIMIT_H_

#include <cstdint>

namespace troupe {

struct FileLimit {
  int64_t max = 0;   // that may be open at once
  int64_t open = 0;  // that are
  int64_t left() const { return max - open; }
};

// As it is now.
FileLimit ReadFileLimit();

// Takes as much as this user may, and returns what that is; where it cannot be
// raised it stays. Once, at a daemon's start.
FileLimit RaiseFileLimit();

// What a person can do where it does not suffice, for messages.
inline constexpr char kRaiseFileLimit[] =
    "raise the hard limit of open files (`ulimit -Hn` shows it) where the "
    "daemon is started: nofile in /etc/security/limits.conf, LimitNOFILE in a "
    "systemd unit, --ulimit nofile of a container";

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_FILE_LIMIT_H_
