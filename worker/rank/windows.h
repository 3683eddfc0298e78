// What is in the host's memory at a time of a state that is set or read.
#ifndef TROUPE_WORKER_RANK_WINDOWS_H_
#define TROUPE_WORKER_RANK_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace troupe {

// Calls `each` for all elements, from the first to the last, a window of them
// at a time. Returns the first error.
absl::Status InWindows(
    int64_t elements,
    absl::FunctionRef<absl::Status(int64_t begin, int64_t count)> each);

// Memory for a window of `elements` elements of f32, in bytes.
std::vector<char> WindowOf(int64_t elements);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_WINDOWS_H_
