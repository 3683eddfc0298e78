// The text of a small file: one that this build, its own processes or the
// kernel wrote, such as /proc/meminfo, or with a bound one of a user.
#ifndef TROUPE_PROTO_BASE_FILE_TEXT_H_
#define TROUPE_PROTO_BASE_FILE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/types/optional.h"

namespace troupe {

// Its first `bytes_max` bytes; nullopt where it cannot be opened or read. To
// refuse a file that is too long, ask for one byte more than is accepted.
absl::optional<std::string> FileText(const std::string& path,
                                     size_t bytes_max = size_t{64} << 20);

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_FILE_TEXT_H_
