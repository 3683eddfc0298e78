#include "proto/plan/at_rest.h"

#include <algorithm>
#include <vector>

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

// The first of as many pieces as the group has ranks, or of one.
Piece SlicesOf(const Plan& plan, bool dealt, int group) {
  return {.index = 0,
          .count = dealt ? GroupSize(plan.mesh(), plan.groups(group)) : 1};
}

bool AllPrefixes(const std::vector<UnitState>& states) {
  return std::all_of(states.begin(), states.end(),
                     [](const UnitState& state) { return state.is_prefix(); });
}

int64_t StateElementsIn(const std::vector<UnitState>& states,
                        const Range& range) {
  int64_t elements = 0;
  for (const UnitState& state : states) elements += state.ElementsIn(range);
  return elements;
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

int64_t LargestStateAtRest(const Plan& plan, const Placement& placement) {
  const Unit& unit = UnitOf(plan, placement);
  const std::vector<UnitState> states =
      UnitStates(plan.job().optimizer(), unit);
  // The first slice is the largest, and its elements have the most states.
  if (AllPrefixes(states)) {
    return StateElementsIn(states, {0, LargestTrainedAtRest(plan, placement)});
  }
  int64_t largest = 0;
  const Piece pieces = SlicesOf(plan, placement.has_dealt(), placement.dealt());
  for (Piece piece = pieces; piece.index < pieces.count; ++piece.index) {
    largest = std::max(
        largest,
        StateElementsIn(states, EvenLines(TrainedElements(unit), piece)));
  }
  return largest;
}

int64_t LargestStateDuty(const Plan& plan, const Placement& placement,
                         int part) {
  const Unit& unit = UnitOf(plan, placement);
  if (unit.parts(part).frozen()) return 0;
  const OptimizerSpec& optimizer = plan.job().optimizer();
  const std::vector<UnitState> states = UnitStates(optimizer, unit);
  if (AllPrefixes(states)) {
    return LargestDuty(plan, placement, part) *
           static_cast<int64_t>(
               StatesOfPart(optimizer, unit.parts(part)).size());
  }
  const Placement::Part& with = placement.parts(part);
  const Piece slices = SlicesOf(plan, placement.has_dealt(), placement.dealt());
  const Piece shares = SlicesOf(plan, with.has_shared(), with.shared());
  int64_t largest = 0;
  for (Piece slice = slices; slice.index < slices.count; ++slice.index) {
    const Range rests =
        Both(RangeOfPart(unit, part), EvenLines(TrainedElements(unit), slice));
    for (Piece share = shares; share.index < shares.count; ++share.index) {
      const Range duty = EvenLines(rests.size(), share);
      largest =
          std::max(largest, StateElementsIn(states, {rests.begin + duty.begin,
                                                     rests.begin + duty.end}));
    }
  }
  return largest;
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
