// What a unit does when text is generated: the ops of its forward pass, for a
// few new positions of one sequence. Masks and the loss are gone; of the unit
// with the loss, the logits of one position are the output.
#ifndef TROUPE_PROTO_PLAN_DECODING_TABLE_H_
#define TROUPE_PROTO_PLAN_DECODING_TABLE_H_

#include <cstdint>

#include "proto/unit.pb.h"

namespace troupe {

// For up to `positions` at once. REQUIRES a table made without dropout.
UnitTable DecodingTable(const UnitTable& table, int64_t positions);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_DECODING_TABLE_H_
