#include "proto/plan/at_rest.h"

#include <algorithm>

#include "proto/plan/groups.h"
#include "proto/plan/slices.h"

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

}  // namespace

Range Both(const Range& a, const Range& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Range RangeAtRest(const Plan& plan, const Placement& placement, int rank) {
  const int64_t elements = UnitOf(plan, placement).flat_elements();
  if (!placement.has_dealt()) return {0, elements};
  return EvenLines(elements,
                   PieceOf(plan.mesh(), plan.groups(placement.dealt()), rank));
}

Range PartAtRest(const Plan& plan, const Placement& placement, int part,
                 int rank) {
  return Both(RangeOfPart(UnitOf(plan, placement), part),
              RangeAtRest(plan, placement, rank));
}

Range DutyOf(const Plan& plan, const Placement& placement, int part, int rank) {
  const Range rests = PartAtRest(plan, placement, part, rank);
  const Placement::Part& with = placement.parts(part);
  if (!with.has_shared()) return rests;
  const Range slice = EvenLines(
      rests.size(), PieceOf(plan.mesh(), plan.groups(with.shared()), rank));
  return {rests.begin + slice.begin, rests.begin + slice.end};
}

int64_t LargestAtRest(const Plan& plan, const Placement& placement) {
  return LargestSlice(plan, placement.has_dealt(), placement.dealt(),
                      UnitOf(plan, placement).flat_elements());
}

int64_t LargestDuty(const Plan& plan, const Placement& placement, int part) {
  const Placement::Part& with = placement.parts(part);
  return LargestSlice(
      plan, with.has_shared(), with.shared(),
      std::min(RangeOfPart(UnitOf(plan, placement), part).size(),
               LargestAtRest(plan, placement)));
}

}  // namespace troupe
