// Collectives for large buffers: a ring, in segments.
//
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations" (2009). The buffer of S bytes is N blocks. In step s of the
// reduction rank r sends block r - s - 1 to rank r + 1, receives block r - s -
// 2 from rank r - 1 and adds it to its own; after N - 1 steps it holds block r
// complete. In N - 1 steps more the complete blocks go round. Everything is
// modulo N.
//
//   all-reduce       2 (N - 1) steps, each rank sends 2 (N - 1) / N  S bytes
//   reduce-scatter       N - 1 steps,                   (N - 1) / N  S
//   all-gather           N - 1 steps,                   (N - 1) / N  S
//   broadcast    N - 2 + segments steps, at most S
//
// Blocks travel in segments, and a segment goes on as soon as it is reduced,
// not when its block is: so the wire is busy while a rank adds. A block is
// summed in the order of the ring and then copied, so all ranks get the same
// bits.
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_RING_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_RING_H_

#include "absl/status/status.h"
#include "worker/collective/blocks.h"
#include "worker/collective/communicator.h"
#include "worker/collective/gloo/wires.h"

namespace troupe {

// Within an operation of the wires.

absl::Status RingAllReduce(Wires& wires, const CommBlocks& data, ReduceOp op);
// As communicator.h has it: `send` is scratch, and `receive` may be a block of
// it.
absl::Status RingReduceScatter(Wires& wires, const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op);
// In place: this rank's block is there.
absl::Status RingAllGather(Wires& wires, const CommBlocks& data);
absl::Status RingBroadcast(Wires& wires, CommBuffer data, int root);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_RING_H_
