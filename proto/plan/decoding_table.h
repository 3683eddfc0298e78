// What a unit does when text is generated: the ops of its forward pass, for a
// few new positions of one sequence. Masks, the targets and all that is made of
// them are gone; of the unit with the loss, the logits of one position are the
// output. A unit that is cut over ranks keeps its exchanges; where ranks have
// some columns of the logits each, one more brings them together.
#ifndef TROUPE_PROTO_PLAN_DECODING_TABLE_H_
#define TROUPE_PROTO_PLAN_DECODING_TABLE_H_

#include <cstdint>

#include "proto/unit.pb.h"

namespace troupe {

// For up to `positions` at once. REQUIRES a table made without dropout, and cut
// along no sequence.
UnitTable DecodingTable(const UnitTable& table, int64_t positions);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_DECODING_TABLE_H_
