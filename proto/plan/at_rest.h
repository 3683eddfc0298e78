// What a rank has of a unit between uses, and what of that it does alone.
//
// A unit that is dealt (Placement.dealt) rests in even slices of its trained
// elements, of whole lines: that of member i of the group is block i of the
// buffer's collectives. Which of its buffers do so, Buffer.slice says; where
// others are whole, the rank still changes, sums and saves its slice only. Its
// frozen elements are dealt in the same way, on their own, where parameters
// rest in slices; else every rank has all of them (Placement.Part.unsharded). A
// slice of PARAMETERS is the slice of the trained elements, and behind it that
// of the frozen ones. Of a part of what rests, those who have the same of it do
// an even slice each.
//
// Where servers keep a unit (Placement.served), nothing of it rests on
// replicas, though they have buffers of all of it.
//
// All in elements of the unit's flat buffer. REQUIRE check_shape of the
// placement.
#ifndef TROUPE_PROTO_PLAN_AT_REST_H_
#define TROUPE_PROTO_PLAN_AT_REST_H_

#include <cstdint>

#include "proto/plan.pb.h"
#include "proto/plan/layout.h"

namespace troupe {

// What is in both; empty ranges begin at the later beginning.
Range Both(const Range& a, const Range& b);

// Whether nothing of the unit rests on ranks with this placement.
inline bool KeepsNoState(const Placement& placement) {
  return placement.has_served() && !placement.has_dealt();
}

// The rank's slice of the unit's trained elements, and of its frozen ones; all
// of them where they are not dealt.
Range TrainedAtRest(const Plan& plan, const Placement& placement, int rank);
Range FrozenAtRest(const Plan& plan, const Placement& placement, int rank);

// The slice, of these two, in which a part lies.
Range AtRestWith(const Plan& plan, const Placement& placement, int part,
                 int rank);

// Whether frozen elements are dealt, too.
bool DealsFrozen(const Plan& plan, const Placement& placement);

// Of a part, what rests here.
Range PartAtRest(const Plan& plan, const Placement& placement, int part,
                 int rank);

// Of that, the rank's even slice: GRAD_NORM and SNAPSHOT are of it.
Range DutyOf(const Plan& plan, const Placement& placement, int part, int rank);

// At most so many elements on any rank of the placement's role.
int64_t LargestTrainedAtRest(const Plan& plan, const Placement& placement);
int64_t LargestFrozenAtRest(const Plan& plan, const Placement& placement);
// Of all the optimizer's states of what is trained (optimizer_states.h).
int64_t LargestStateAtRest(const Plan& plan, const Placement& placement);
int64_t LargestDuty(const Plan& plan, const Placement& placement, int part);
// The states of a duty.
int64_t LargestStateDuty(const Plan& plan, const Placement& placement,
                         int part);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_AT_REST_H_
