// The collectives of a group that shares a segment.
//
// A buffer of S bytes is N blocks, as in communicator.h, and passes through the
// slots in pieces, one phase each. For an all-reduce a rank does, in one phase:
//
//   give    copies piece t of each other rank's block into its in slot
//   reduce  adds up piece t - 1 of its own block over the in slots of all, in
//           the order of the ranks, into its buffer and into its out slot
//   take    copies piece t - 2 of each other block from the others' out slots
//
// so that three pieces are under way at once and ranks meet once a piece. Each
// rank copies 2 (N - 1) / N S bytes and reduces S / N of N rows; slots stay in
// the cache, so memory is read and written once. A reduce-scatter is the first
// two, an all-gather gives and takes; a reduce is all three, of which only the
// root takes.
//
// Small all-reduces: all give everything, and after one meeting each rank adds
// up all of it. The order of the sum is the same, so the bits are.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_COLLECTIVES_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_COLLECTIVES_H_

#include "absl/status/status.h"
#include "worker/collective/blocks.h"
#include "worker/collective/communicator.h"
#include "worker/collective/shared_memory/copy_choice.h"
#include "worker/collective/shared_memory/phases.h"

namespace troupe {

// As in communicator.h, within an operation of the phases. A rank copies into
// slots as its `kind` says, and from slots as memcpy. A reduce-scatter leaves
// what it reads as it was, but for `receive`.
absl::Status SharedAllReduce(Phases& phases, CopyKind kind,
                             const CommBlocks& data, ReduceOp op);
absl::Status SharedReduce(Phases& phases, CopyKind kind, const CommBlocks& data,
                          int root, ReduceOp op);
absl::Status SharedReduceScatter(Phases& phases, CopyKind kind,
                                 const CommBlocks& send,
                                 const CommBuffer& receive, ReduceOp op);
absl::Status SharedAllGather(Phases& phases, CopyKind kind,
                             const CommBuffer& send, const CommBlocks& receive);
absl::Status SharedBroadcast(Phases& phases, CopyKind kind, CommBuffer data,
                             int root);

// Chooses the copies of the collectives that follow: all-reduces two slots of
// zeros either way, which takes a few milliseconds at most.
absl::Status TryCopies(Phases& phases, CopyChoice& choice);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_COLLECTIVES_H_
