// What SNAPSHOT and KEEP have in common: a range of a unit's state, copied from
// wherever it rests into the host's memory.
#ifndef TROUPE_WORKER_INSTRUCTIONS_COPY_STATE_H_
#define TROUPE_WORKER_INSTRUCTIONS_COPY_STATE_H_

#include "absl/status/statusor.h"
#include "proto/plan/layout.h"
#include "worker/instructions/call.h"
#include "worker/rank/unit_state.h"

namespace troupe {

// What rests here of a stretch of the instruction's unit, in the buffers that
// it names.
UnitFlatBuffers StateOf(const Call& call, const StretchAtRest& at);

// Lays the elements `range` of it, counted from the first at rest, behind one
// another in `copy`: parameters, then each of the optimizer's moments. Settled
// when it returns. Errors are the disk's.
absl::StatusOr<UnitFlatBuffers> CopyState(const Call& call,
                                          const UnitFlatBuffers& from,
                                          const Range& range, char* copy);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_COPY_STATE_H_
