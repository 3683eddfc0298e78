// The all-to-all of a group that shares a segment, with blocks of any sizes.
//
// A rank knows the sizes of what it sends and receives, and no others. So in
// the first phase, beside the first pieces, each says what it gives to each
// other, what it expects of each, and how long its longest block is. Then all
// know how many phases there are, and which ranks disagree.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_ALL_TO_ALL_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_ALL_TO_ALL_H_

#include "absl/status/statusor.h"
#include "worker/collective/blocks.h"
#include "worker/collective/shared_memory/copy_choice.h"
#include "worker/collective/shared_memory/phases.h"

namespace troupe {

// Within an operation of the phases. Returns the bytes of the longest block of
// all, which is the same at all ranks. Internal, at both: a rank gives what the
// other does not expect.
absl::StatusOr<int64_t> SharedAllToAll(Phases& phases, CopyKind kind,
                                       const CommBlocks& send,
                                       const CommBlocks& receive);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_ALL_TO_ALL_H_
