// Which value a buffer holds, where that rests in another tier of memory than
// the one in which it is used (docs/plan.md, "Tiers").
#ifndef TROUPE_PROTO_PLAN_RESTING_BUFFERS_H_
#define TROUPE_PROTO_PLAN_RESTING_BUFFERS_H_

#include <vector>

#include "proto/program.pb.h"

namespace troupe {

// For each buffer of the program the one in which its value rests: itself, and
// of a copy the one that it comes from or goes to, by however many moves. -1:
// no move says of what it is a copy. REQUIRES CheckShape.
std::vector<int> RestingBuffers(const Program& program);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_RESTING_BUFFERS_H_
