// The arithmetic of reductions, for backends that reduce on the CPU. Order is
// the caller's: the same order gives the same bits.
#ifndef TROUPE_WORKER_COLLECTIVE_REDUCE_H_
#define TROUPE_WORKER_COLLECTIVE_REDUCE_H_

#include "absl/types/span.h"
#include "worker/collective/comm_buffer.h"
#include "worker/collective/communicator.h"

namespace troupe {

// into[i] = into[i] op from[i]. Sums of bf16 are rounded here, so a chain of
// these rounds more than once: see ReduceRows. NaN wins a maximum.
// REQUIRES equal types and sizes, no overlap, a type other than kByte.
void ReduceInto(ReduceOp op, CommBuffer into, CommBuffer from);

// out[i] = rows[0][i] op rows[1][i] op ..., in this order; bf16 is summed in
// f32 and rounded once. `out` may be one of the rows. REQUIRES what ReduceInto
// does.
void ReduceRows(ReduceOp op, CommBuffer out, absl::Span<const CommBuffer> rows);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_REDUCE_H_
