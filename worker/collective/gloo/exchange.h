// Collectives in which each rank talks to each other directly.
//
// For small buffers, where the number of steps counts and not the bytes: one
// step, in which each rank sends N - 1 messages. And for sums of bf16: a rank
// receives its block from all the others and adds them up in f32, in the order
// of the ranks, rounding once; the ring would round at each step. The bytes are
// those of the ring, (N - 1) / N S, but N - 1 peers send to a rank at once.
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_EXCHANGE_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_EXCHANGE_H_

#include "absl/status/status.h"
#include "worker/collective/blocks.h"
#include "worker/collective/communicator.h"
#include "worker/collective/gloo/wires.h"

namespace troupe {

// Within an operation of the wires.

// Every rank sends all of its buffer, S bytes, to each other.
absl::Status DirectAllReduce(Wires& wires, CommBuffer data, ReduceOp op);
// Segment by segment of the rank's block; `receive` may be that.
absl::Status DirectReduceScatter(Wires& wires, const CommBlocks& send,
                                 const CommBuffer& receive, ReduceOp op);
// In place: this rank's block is there.
absl::Status DirectAllGather(Wires& wires, const CommBlocks& data);
// What DirectAllReduce makes, at the root only.
absl::Status DirectReduce(Wires& wires, const CommBuffer& data, int root,
                          ReduceOp op);
// In place: each rank's own block comes to the root.
absl::Status DirectGather(Wires& wires, const CommBlocks& data, int root);
absl::Status DirectBroadcast(Wires& wires, CommBuffer data, int root);
// Between ranks: what a rank keeps is not copied.
absl::Status DirectAllToAll(Wires& wires, const CommBlocks& send,
                            const CommBlocks& receive);
// Messages that a DirectShift and a lone send or receive have in common.
absl::Status DirectSend(Wires& wires, const CommBuffer& data, int to);
absl::Status DirectRecv(Wires& wires, const CommBuffer& data, int from);
absl::Status DirectShift(Wires& wires, const ShiftBuffers& buffers);
// Dissemination: in round k each rank tells rank r + 2^k; log2 N rounds.
absl::Status DisseminationBarrier(Wires& wires);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_EXCHANGE_H_
