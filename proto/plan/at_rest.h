// What a rank has of a unit between uses, and what of that it does alone.
//
// A part that is dealt (Placement.Part.dealt) is stored in slices over the
// group that it names: even ones, or in proportion to Group.weights. Parts in a
// row that are dealt over the same ranks, or over none, are a stretch: of one
// that is dealt, each rank has a slice of whole lines, that of member i of the
// group being block i of the buffer's collectives; of others each rank has all.
// Trained and frozen parts are stretches of their own. Most units have one
// stretch of each. A block whose experts are on some ranks only has more: its
// attention is dealt over others than its experts.
//
//   flat buffer       | attention, router |   experts   |
//   a slice of it     | slice of 4 |  slice of 2  |        behind one another
//   UNSHARDED_...     | attention, router |   experts   |  what is dealt
//
// Which of a unit's buffers are slices, Buffer.slice says; where others are
// whole, the rank still changes, sums and saves its slices only. In a buffer
// that is a slice, what rests of each stretch lies behind that of the one
// before; so do the optimizer's states, all those of a stretch together. The
// buffers that are whole for a while have what is dealt only: passes use all
// else where it rests. Of a part of what rests, those that have the same of it
// do an even slice each.
//
// Where servers keep a unit (Placement.served), nothing of it rests on
// replicas, though they have buffers of all of it.
//
// All in elements. REQUIRE check_shape of the placement.
#ifndef TROUPE_PROTO_PLAN_AT_REST_H_
#define TROUPE_PROTO_PLAN_AT_REST_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "proto/plan.pb.h"
#include "proto/plan/layout.h"

namespace troupe {

// What is in both; empty ranges begin at the later beginning.
Range Both(const Range& a, const Range& b);

// Whether nothing of the unit rests on ranks with this placement.
bool KeepsNoState(const Placement& placement);

// Parts of a unit in a row that rest alike.
struct Stretch {
  int part = 0;  // the first
  int part_count = 0;
  Range all;  // of the unit's flat buffer
  bool frozen = false;
  absl::optional<int> dealt;  // over this group
  // Of one that is dealt, its first element in UNSHARDED_PARAMETERS and
  // UNSHARDED_GRADIENTS.
  int64_t unsharded = 0;
};
// All of the unit's elements, in their order; and the one in which a part lies.
std::vector<Stretch> StretchesOf(const Plan& plan, const Placement& placement);
Stretch StretchWith(const Plan& plan, const Placement& placement, int part);

// What rests of it on a rank that keeps the unit.
Range RestsOf(const Plan& plan, const Stretch& stretch, int rank);
// The share of a part that a rank stores of it, where no line is cut.
double ShareAtRest(const Plan& plan, const Placement& placement, int part,
                   int rank);
// What each member of its group has, in their order, as ranges of the stretch;
// none where it is not dealt, or in even slices.
std::vector<Range> WeightedSlices(const Plan& plan, const Stretch& stretch);

// What a rank has of a stretch.
struct StretchAtRest {
  Stretch stretch;
  Range rests;              // of the unit's flat buffer
  int64_t first = 0;        // where that begins in a buffer that is a slice
  int64_t first_state = 0;  // and in OPTIMIZER_STATE
};
std::vector<StretchAtRest> AtRest(const Plan& plan, const Placement& placement,
                                  int rank);

// Of the stretch in which a part lies.
StretchAtRest AtRestWith(const Plan& plan, const Placement& placement, int part,
                         int rank);

// Of a part, what rests here.
Range PartAtRest(const Plan& plan, const Placement& placement, int part,
                 int rank);

// Of that, the rank's even slice: GRAD_NORM and SNAPSHOT are of it.
Range DutyOf(const Plan& plan, const Placement& placement, int part, int rank);

// Whether any part is dealt; and, of the parts that are, trained ones or all,
// the first over each group: GATHER_PARAMETERS and SCATTER_GRADS name it, and
// are of all stretches that are dealt over the same.
bool IsDealt(const Placement& placement);
enum class DealtParts { kTrained, kAll };
std::vector<int> FirstDealtParts(const Plan& plan, const Placement& placement,
                                 DealtParts of);
// The stretches that such an instruction is of.
std::vector<Stretch> StretchesWith(const Plan& plan, const Placement& placement,
                                   int part, DealtParts of);

// Elements of the unit that are dealt: those in UNSHARDED_GRADIENTS, and in
// UNSHARDED_PARAMETERS.
int64_t DealtElements(const Plan& plan, const Placement& placement,
                      DealtParts of);
// Whether there are others, which are used where they rest.
bool KeepsSome(const Plan& plan, const Placement& placement, DealtParts of);

// The most elements on any rank of a role, of which `rank` is one. Of what is
// dealt, a line at least: a small stretch may leave a rank with a small weight
// nothing, which then has the buffers of one that has some.
int64_t LargestAtRest(const Plan& plan, const Stretch& stretch, int rank);
int64_t LargestTrainedAtRest(const Plan& plan, const Placement& placement,
                             int rank);
int64_t LargestFrozenAtRest(const Plan& plan, const Placement& placement,
                            int rank);
// Of all the optimizer's states of what is trained (optimizer_states.h).
int64_t LargestStateAtRest(const Plan& plan, const Placement& placement,
                           int rank);
int64_t LargestDuty(const Plan& plan, const Placement& placement, int part,
                    int rank);
// The states of a duty.
int64_t LargestStateDuty(const Plan& plan, const Placement& placement, int part,
                         int rank);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_AT_REST_H_
