// Files that only their owner reads: keys and tokens.
#ifndef TROUPE_PROTO_TRUST_PRIVATE_FILE_H_
#define TROUPE_PROTO_TRUST_PRIVATE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// A directory of mode 0700, and those above it that are missing. One that is
// there gets that mode. Errors name the path and the errno.
absl::Status MakePrivateDirectory(const std::string& path);

// Whole or not at all, mode 0600, durable.
absl::Status WritePrivateFile(const std::string& path, absl::string_view bytes);

// FailedPrecondition where everybody on the machine may read or write it;
// NotFound where it is not there.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path);

// Of a file that is no secret. At most 1 MiB, as above.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_PRIVATE_FILE_H_
