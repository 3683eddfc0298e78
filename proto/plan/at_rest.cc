#include "proto/plan/at_rest.h"

#include <algorithm>

#include "proto/plan/groups.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"
#include "proto/plan/trained.h"

namespace troupe {
namespace {

const Unit& UnitOf(const Plan& plan, const Placement& placement) {
  return plan.units(placement.unit());
}

// The largest of even slices over a group, or all where there is none.
int64_t LargestSlice(const Plan& plan, bool dealt, int group,
                     int64_t elements) {
  if (!dealt) return elements;
  const int ranks = GroupSize(plan.mesh(), plan.groups(group));
  return EvenLines(elements, {.index = 0, .count = ranks}).size();
}

// The rank's slice of a range, where that is dealt.
Range SliceOf(const Plan& plan, const Placement& placement, bool dealt,
              const Range& range, int rank) {
  if (!dealt) return range;
  const Range slice = EvenLines(
      range.size(), PieceOf(plan.mesh(), plan.groups(placement.dealt()), rank));
  return {range.begin + slice.begin, range.begin + slice.end};
}

}  // namespace

Range Both(const Range& a, const Range& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

bool DealsFrozen(const Plan& plan, const Placement& placement) {
  const Unit& unit = UnitOf(plan, placement);
  for (int p = 0; p < unit.parts_size(); ++p) {
    if (unit.parts(p).frozen() && placement.parts(p).unsharded()) return false;
  }
  return placement.has_dealt();
}

Range TrainedAtRest(const Plan& plan, const Placement& placement, int rank) {
  if (KeepsNoState(placement)) return {};
  return SliceOf(plan, placement, placement.has_dealt(),
                 TrainedRange(UnitOf(plan, placement)), rank);
}

Range FrozenAtRest(const Plan& plan, const Placement& placement, int rank) {
  return SliceOf(plan, placement, DealsFrozen(plan, placement),
                 FrozenRange(UnitOf(plan, placement)), rank);
}

Range AtRestWith(const Plan& plan, const Placement& placement, int part,
                 int rank) {
  return UnitOf(plan, placement).parts(part).frozen()
             ? FrozenAtRest(plan, placement, rank)
             : TrainedAtRest(plan, placement, rank);
}

Range PartAtRest(const Plan& plan, const Placement& placement, int part,
                 int rank) {
  return Both(RangeOfPart(UnitOf(plan, placement), part),
              AtRestWith(plan, placement, part, rank));
}

Range DutyOf(const Plan& plan, const Placement& placement, int part, int rank) {
  const Range rests = PartAtRest(plan, placement, part, rank);
  const Placement::Part& with = placement.parts(part);
  if (!with.has_shared()) return rests;
  const Range slice = EvenLines(
      rests.size(), PieceOf(plan.mesh(), plan.groups(with.shared()), rank));
  return {rests.begin + slice.begin, rests.begin + slice.end};
}

int64_t LargestTrainedAtRest(const Plan& plan, const Placement& placement) {
  if (KeepsNoState(placement)) return 0;
  return LargestSlice(plan, placement.has_dealt(), placement.dealt(),
                      TrainedElements(UnitOf(plan, placement)));
}

int64_t LargestFrozenAtRest(const Plan& plan, const Placement& placement) {
  return LargestSlice(plan, DealsFrozen(plan, placement), placement.dealt(),
                      FrozenRange(UnitOf(plan, placement)).size());
}

// The first slice is the largest, and its elements have the most states.
int64_t LargestStateAtRest(const Plan& plan, const Placement& placement) {
  return StateElements(plan.job().optimizer(), UnitOf(plan, placement),
                       {0, LargestTrainedAtRest(plan, placement)});
}

int64_t LargestDuty(const Plan& plan, const Placement& placement, int part) {
  const Placement::Part& with = placement.parts(part);
  const Unit& unit = UnitOf(plan, placement);
  return LargestSlice(plan, with.has_shared(), with.shared(),
                      std::min(RangeOfPart(unit, part).size(),
                               unit.parts(part).frozen()
                                   ? LargestFrozenAtRest(plan, placement)
                                   : LargestTrainedAtRest(plan, placement)));
}

}  // namespace troupe
