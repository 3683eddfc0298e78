// Writes a compute order of stages into programs of units. Each stage becomes
// its units: ascending for FORWARD, descending for the two backward kinds.
// Where backward-weight directly follows backward-input of the same stage and
// micro-batch, the two are interleaved unit by unit, so that what the one
// leaves for the other lives for a moment only. Units whose ranks exchange
// something are written segment by segment, with an EXCHANGE between; what has
// nothing to do, as the BACKWARD_INPUT of an embedding, is left out. A unit
// that does not keep all that its backward passes read makes it again directly
// before them: it need not wait for the gradient, and takes memory for that
// long only. Between stages on different ranks stand SEND and RECV, each where
// the dry run has what it carries (transfers.h): behind the sender's
// computation, of a whole backward pass where it is one, and before the
// receiver's.
#ifndef TROUPE_SCHEDULER_PASSES_EXPAND_ORDER_H_
#define TROUPE_SCHEDULER_PASSES_EXPAND_ORDER_H_

#include "scheduler/passes/draft.h"

namespace troupe {

// Adds a program of this kind to every rank of replicas of one kind, by its
// number (proto/plan/replica_share.h). `homes`: transfers.h.
void ExpandOrder(const ComputeOrder& order, const ComputeOrder& homes,
                 Program::Kind kind, int replica_kind, Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_EXPAND_ORDER_H_
