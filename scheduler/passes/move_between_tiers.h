// Adds FETCH and EVICT: where an instruction uses a value in another tier than
// the one in which that rests, it gets a copy there (docs/plan.md, "Tiers").
// What it reads is fetched before it, what it changes is taken back behind it.
//
// A copy is kept for a run of uses: as long as each comes no later than in the
// next step of work of its lanes. What a unit's forward and backward use is so
// fetched once where they follow each other, and for each pass where other
// units come between them. A value that comes and goes in one run lies where it
// is used, and never rests. Where the job asks for chunks, what rests below the
// device stays there from one run to the next as long as that has room
// (stay_on_device.h), and the two are one run.
//
// Moves go between neighbouring tiers, one for each step down or up. How far
// ahead they run is not said here: their lanes are their own, and slots have
// room for a copy while the step of work before it runs, and while the one
// behind it does (assign_slots.h).
#ifndef TROUPE_SCHEDULER_PASSES_MOVE_BETWEEN_TIERS_H_
#define TROUPE_SCHEDULER_PASSES_MOVE_BETWEEN_TIERS_H_

#include "scheduler/passes/draft.h"
#include "scheduler/passes/stay_on_device.h"

namespace troupe {

// REQUIRES buffers, each in the tier where its value rests.
void MoveBetweenTiers(Draft& draft);
// By another rule of what stays, to be compared with.
void MoveBetweenTiers(StayRule rule, Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_MOVE_BETWEEN_TIERS_H_
