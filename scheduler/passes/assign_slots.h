// Gives every buffer a slot and its place there. Resident buffers (parameters,
// gradients, ...) own one each, and so does what is carried from program to
// program in several copies; each has as many as are in use at once, shared by
// the rank's programs. They are listed by kind, then by unit, so that
// neighbouring units are neighbours in memory.
//
// All others of a line item share slots, packed by when they are in use
// (pack_buffers.h): from the first writer to the last user, in program order. A
// carried one is out of use in TRAIN until the next step's is written. What a
// transfer or a move between tiers moves is in use while the step of work next
// to it runs too, so that the two overlap; gathers that are to run farther
// ahead (Draft.unsharded_bytes), from when on there is room for them
// (place_gathers.h).
#ifndef TROUPE_SCHEDULER_PASSES_ASSIGN_SLOTS_H_
#define TROUPE_SCHEDULER_PASSES_ASSIGN_SLOTS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "proto/plan.pb.h"
#include "scheduler/passes/draft.h"

namespace troupe {

void AssignSlots(Draft& draft);

// The bytes of a line item that a role of the plan has in use at once when they
// are most, however they are packed, with gathers one step of work ahead.
// REQUIRES buffers that have no slots yet.
int64_t LeastBytes(const Plan& plan, Role role, absl::string_view item);

// The bytes of a tier that the role's slots will take. REQUIRES as LeastBytes.
int64_t SlotBytes(const Plan& plan, Role role, Tier tier);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_ASSIGN_SLOTS_H_
