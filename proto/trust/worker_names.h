// The names that the holder of a worker's certificate may register under. The
// certificate says them as URIs among the subject's alternative names:
//
//   troupe:worker-name:gpu-7      that name
//   troupe:worker-name:gpu-7-*    every name that begins so
//   troupe:worker-name:*          every name
//
// So a host that was broken into cannot pass for another one's worker. A
// certificate without such a URI, as builds before protocol 16 made them and
// other authorities do, is good for no name, unless the scheduler was told to
// take it for all (troupe-scheduler --unnamed-workers).
#ifndef TROUPE_PROTO_TRUST_WORKER_NAMES_H_
#define TROUPE_PROTO_TRUST_WORKER_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace troupe {

// InvalidArgument: not letters, digits, '.', '_' and '-', with or without one
// '*' at the end, or longer than 100 bytes, or empty.
absl::Status CheckWorkerNames(absl::string_view names);

std::string WorkerNamesUri(absl::string_view names);
// "gpu-7-*"; nothing where the URI is no such one.
absl::optional<std::string> WorkerNamesOfUri(absl::string_view uri);

// Whether one of `allowed` allows the name. PermissionDenied says which are, or
// how to make a certificate that has some.
absl::Status CheckMayBeNamed(absl::string_view name,
                             const std::vector<std::string>& allowed);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_WORKER_NAMES_H_
