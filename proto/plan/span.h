// What a timeline says of an instruction but for when it ran: the same in a
// prediction and in a measurement, so that one can be held against the other.
#ifndef TROUPE_PROTO_PLAN_SPAN_H_
#define TROUPE_PROTO_PLAN_SPAN_H_

#include "proto/program.pb.h"
#include "proto/timeline.pb.h"

namespace troupe {

// Of the instruction, which is number `index` of its program; without times.
Span SpanOf(const Instruction& instruction, int index);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SPAN_H_
