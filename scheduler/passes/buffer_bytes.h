// How large a buffer is, whichever pass asks.
#ifndef TROUPE_SCHEDULER_PASSES_BUFFER_BYTES_H_
#define TROUPE_SCHEDULER_PASSES_BUFFER_BYTES_H_

#include <cstdint>

#include "proto/plan.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Of one copy, for one micro-batch where it is a micro-batch's, on a rank of
// the role. `unit` is ignored for kinds that belong to the rank, but for a
// WORKSPACE: that of a unit's STEP on the host; negative: the device's.
// `output` (Buffer.output) for all but ACTIVATION and GRADIENT. 0: there is
// nothing to keep.
int64_t BufferBytes(const Plan& plan, const Role& role, Buffer::Kind kind,
                    int unit, int output = 0);

// Whether a rank of the role has only a slice of such a buffer of the unit.
bool RestsInSlices(const Plan& plan, const Role& role, Buffer::Kind kind,
                   int unit);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_BUFFER_BYTES_H_
