// What a timeline says of an instruction but for when it ran: the same in a
// prediction and in a measurement, so that one can be held against the other.
#ifndef TROUPE_PROTO_PLAN_SPAN_H_
#define TROUPE_PROTO_PLAN_SPAN_H_

#include "proto/plan.pb.h"
#include "proto/timeline.pb.h"

namespace troupe {

// Of the instruction, which is number `index` of its program; without times.
// All ranks of a role say the same: peers are places on the pipeline, groups
// indices into the plan's.
Span SpanOf(const Instruction& instruction, int index);

// Then says it of this rank: peers are ranks, groups are numbered through, so
// that those that meet, and nobody else, name the same.
void NameRanks(const Plan& plan, RankTimeline& timeline);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SPAN_H_
