#include "proto/plan/at_rest.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "proto/plan/groups.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

const Unit& UnitOf(const Plan& plan, const Placement& placement) {
  return plan.units(placement.unit());
}

absl::optional<int> GroupOf(const Placement::Part& part) {
  if (!part.has_dealt()) return absl::nullopt;
  return part.dealt();
}

absl::optional<int> SharedOf(const Placement::Part& part) {
  if (!part.has_shared()) return absl::nullopt;
  return part.shared();
}

bool IsOf(const Stretch& stretch, DealtParts of) {
  return of == DealtParts::kAll || !stretch.frozen;
}

Range SliceAt(const Range& range, const Piece& piece) {
  const Range slice = EvenLines(range.size(), piece);
  return {range.begin + slice.begin, range.begin + slice.end};
}

// The rank's even slice of a range, of those of the group.
Range EvenSliceOver(const Plan& plan, int group, const Range& range, int rank) {
  return SliceAt(range, PieceOf(plan.mesh(), plan.groups(group), rank));
}

// The first of as many even pieces as the group has ranks, or of one.
Piece SlicesOf(const Plan& plan, const absl::optional<int>& group) {
  return {.index = 0,
          .count = group.has_value()
                       ? GroupSize(plan.mesh(), plan.groups(*group))
                       : 1};
}

// The largest of such slices, which is the first.
int64_t LargestEvenSlice(const Plan& plan, const absl::optional<int>& group,
                         int64_t elements) {
  return EvenLines(elements, SlicesOf(plan, group)).size();
}

bool HasWeights(const Plan& plan, const Stretch& stretch) {
  return stretch.dealt.has_value() &&
         !plan.groups(*stretch.dealt).weights().empty();
}

Range WeightedSlice(const Group& group, const Range& range, int member) {
  const Range slice = WeightedLines(range.size(), group.weights(), member);
  return {range.begin + slice.begin, range.begin + slice.end};
}

// The slices of a stretch that ranks of the role of `rank` have: of those that
// are even, all; else of those with its weight. All of it, where it is not
// dealt.
template <typename Visit>
void ForSlicesOfRole(const Plan& plan, const Stretch& stretch, int rank,
                     const Visit& visit) {
  if (!HasWeights(plan, stretch)) {
    Piece slice = SlicesOf(plan, stretch.dealt);
    for (; slice.index < slice.count; ++slice.index) {
      visit(SliceAt(stretch.all, slice));
    }
    return;
  }
  const Group& group = plan.groups(*stretch.dealt);
  const int own = PieceOf(plan.mesh(), group, rank).index;
  const std::vector<Range> slices =
      AllWeightedLines(stretch.all.size(), group.weights());
  for (int member = 0; member < group.weights_size(); ++member) {
    if (group.weights(member) != group.weights(own)) continue;
    visit(Range{stretch.all.begin + slices[member].begin,
                stretch.all.begin + slices[member].end});
  }
}

// The largest of one visit to each of those slices. `first_is`: of even ones
// that is the first.
template <typename Measure>
int64_t LargestOfRole(const Plan& plan, const Stretch& stretch, int rank,
                      bool first_is, const Measure& measure) {
  if (first_is && !HasWeights(plan, stretch)) {
    return measure(SliceAt(stretch.all, SlicesOf(plan, stretch.dealt)));
  }
  int64_t largest = 0;
  ForSlicesOfRole(plan, stretch, rank, [&](const Range& slice) {
    largest = std::max(largest, measure(slice));
  });
  return largest;
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

int64_t LargestOf(const Plan& plan, const Placement& placement, bool frozen,
                  int rank) {
  int64_t elements = 0;
  for (const Stretch& stretch : StretchesOf(plan, placement)) {
    if (stretch.frozen != frozen) continue;
    elements += LargestAtRest(plan, stretch, rank);
  }
  return elements;
}

}  // namespace

Range Both(const Range& a, const Range& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

std::vector<Stretch> StretchesOf(const Plan& plan, const Placement& placement) {
  const Unit& unit = UnitOf(plan, placement);
  std::vector<Stretch> stretches;
  int64_t end = 0;
  int64_t unsharded = 0;  // the end of the last one that is dealt
  for (int p = 0; p < unit.parts_size(); ++p) {
    const Unit::Part& part = unit.parts(p);
    const absl::optional<int> dealt = GroupOf(placement.parts(p));
    const bool goes_on = !stretches.empty() &&
                         stretches.back().frozen == part.frozen() &&
                         stretches.back().dealt == dealt;
    if (!goes_on) {
      stretches.push_back({.part = p,
                           .all = {end, end},
                           .frozen = part.frozen(),
                           .dealt = dealt,
                           .unsharded = unsharded});
    }
    end += part.elements();
    if (dealt.has_value()) unsharded += part.elements();
    stretches.back().all.end = end;
    stretches.back().part_count += 1;
  }
  return stretches;
}

Stretch StretchWith(const Plan& plan, const Placement& placement, int part) {
  for (const Stretch& stretch : StretchesOf(plan, placement)) {
    if (part < stretch.part + stretch.part_count) return stretch;
  }
  return {};
}

Range RestsOf(const Plan& plan, const Stretch& stretch, int rank) {
  if (!stretch.dealt.has_value()) return stretch.all;
  if (!HasWeights(plan, stretch)) {
    return EvenSliceOver(plan, *stretch.dealt, stretch.all, rank);
  }
  const Group& group = plan.groups(*stretch.dealt);
  return WeightedSlice(group, stretch.all,
                       PieceOf(plan.mesh(), group, rank).index);
}

double ShareAtRest(const Plan& plan, const Placement& placement, int part,
                   int rank) {
  if (!placement.parts(part).has_dealt()) return 1;
  const Group& group = plan.groups(placement.parts(part).dealt());
  if (group.weights().empty()) return 1.0 / GroupSize(plan.mesh(), group);
  const auto& weights = group.weights();
  return weights[PieceOf(plan.mesh(), group, rank).index] /
         std::accumulate(weights.begin(), weights.end(), 0.0);
}

std::vector<Range> WeightedSlices(const Plan& plan, const Stretch& stretch) {
  if (!HasWeights(plan, stretch)) return {};
  return AllWeightedLines(stretch.all.size(),
                          plan.groups(*stretch.dealt).weights());
}

std::vector<StretchAtRest> AtRest(const Plan& plan, const Placement& placement,
                                  int rank) {
  std::vector<StretchAtRest> all;
  int64_t first = 0;
  int64_t first_state = 0;
  for (const Stretch& stretch : StretchesOf(plan, placement)) {
    Range rests = RestsOf(plan, stretch, rank);
    if (KeepsNoState(placement)) rests.end = rests.begin;
    all.push_back({.stretch = stretch,
                   .rests = rests,
                   .first = first,
                   .first_state = first_state});
    first += rests.size();
    if (stretch.frozen) continue;
    first_state +=
        StateElements(plan.job().optimizer(), UnitOf(plan, placement), rests);
  }
  return all;
}

StretchAtRest AtRestWith(const Plan& plan, const Placement& placement, int part,
                         int rank) {
  for (const StretchAtRest& at : AtRest(plan, placement, rank)) {
    if (part < at.stretch.part + at.stretch.part_count) return at;
  }
  return {};
}

Range PartAtRest(const Plan& plan, const Placement& placement, int part,
                 int rank) {
  return Both(RangeOfPart(UnitOf(plan, placement), part),
              AtRestWith(plan, placement, part, rank).rests);
}

Range DutyOf(const Plan& plan, const Placement& placement, int part, int rank) {
  const Range rests = PartAtRest(plan, placement, part, rank);
  const Placement::Part& with = placement.parts(part);
  if (!with.has_shared()) return rests;
  return EvenSliceOver(plan, with.shared(), rests, rank);
}

bool KeepsNoState(const Placement& placement) {
  return placement.has_served() && !IsDealt(placement);
}

bool IsDealt(const Placement& placement) {
  return std::any_of(
      placement.parts().begin(), placement.parts().end(),
      [](const Placement::Part& part) { return part.has_dealt(); });
}

std::vector<int> FirstDealtParts(const Plan& plan, const Placement& placement,
                                 DealtParts of) {
  std::vector<int> firsts;
  for (const Stretch& stretch : StretchesOf(plan, placement)) {
    if (!stretch.dealt.has_value() || stretch.all.size() == 0 ||
        !IsOf(stretch, of)) {
      continue;
    }
    const bool is_new =
        std::none_of(firsts.begin(), firsts.end(), [&](int part) {
          return placement.parts(part).dealt() == *stretch.dealt;
        });
    if (is_new) firsts.push_back(stretch.part);
  }
  return firsts;
}

std::vector<Stretch> StretchesWith(const Plan& plan, const Placement& placement,
                                   int part, DealtParts of) {
  std::vector<Stretch> with;
  for (const Stretch& stretch : StretchesOf(plan, placement)) {
    if (stretch.dealt == GroupOf(placement.parts(part)) && IsOf(stretch, of)) {
      with.push_back(stretch);
    }
  }
  return with;
}

int64_t DealtElements(const Plan& plan, const Placement& placement,
                      DealtParts of) {
  int64_t elements = 0;
  for (const Stretch& stretch : StretchesOf(plan, placement)) {
    if (!stretch.dealt.has_value() || !IsOf(stretch, of)) continue;
    elements += stretch.all.size();
  }
  return elements;
}

bool KeepsSome(const Plan& plan, const Placement& placement, DealtParts of) {
  const std::vector<Stretch> stretches = StretchesOf(plan, placement);
  return std::any_of(stretches.begin(), stretches.end(),
                     [of](const Stretch& stretch) {
                       return !stretch.dealt.has_value() && IsOf(stretch, of) &&
                              stretch.all.size() > 0;
                     });
}

int64_t LargestAtRest(const Plan& plan, const Stretch& stretch, int rank) {
  const int64_t largest =
      LargestOfRole(plan, stretch, rank, /*first_is=*/true,
                    [](const Range& slice) { return slice.size(); });
  return std::max(largest, std::min(stretch.all.size(), kLineElements));
}

int64_t LargestTrainedAtRest(const Plan& plan, const Placement& placement,
                             int rank) {
  if (KeepsNoState(placement)) return 0;
  return LargestOf(plan, placement, /*frozen=*/false, rank);
}

int64_t LargestFrozenAtRest(const Plan& plan, const Placement& placement,
                            int rank) {
  return LargestOf(plan, placement, /*frozen=*/true, rank);
}

int64_t LargestStateAtRest(const Plan& plan, const Placement& placement,
                           int rank) {
  const std::vector<UnitState> states =
      UnitStates(plan.job().optimizer(), UnitOf(plan, placement));
  const bool prefixes = AllPrefixes(states);
  int64_t elements = 0;
  for (const Stretch& stretch : StretchesOf(plan, placement)) {
    if (stretch.frozen) continue;
    const int64_t largest =
        LargestOfRole(plan, stretch, rank, /*first_is=*/prefixes,
                      [&states](const Range& slice) {
                        return StateElementsIn(states, slice);
                      });
    const int64_t of_line = StateElementsIn(
        states, {stretch.all.begin,
                 std::min(stretch.all.end, stretch.all.begin + kLineElements)});
    elements += std::max(largest, of_line);
  }
  return elements;
}

int64_t LargestStateDuty(const Plan& plan, const Placement& placement, int part,
                         int rank) {
  const Unit& unit = UnitOf(plan, placement);
  if (unit.parts(part).frozen()) return 0;
  const OptimizerSpec& optimizer = plan.job().optimizer();
  const std::vector<UnitState> states = UnitStates(optimizer, unit);
  if (AllPrefixes(states)) {
    return LargestDuty(plan, placement, part, rank) *
           static_cast<int64_t>(
               StatesOfPart(optimizer, unit.parts(part)).size());
  }
  const Stretch stretch = StretchWith(plan, placement, part);
  const Piece shares = SlicesOf(plan, SharedOf(placement.parts(part)));
  int64_t largest = 0;
  ForSlicesOfRole(plan, stretch, rank, [&](const Range& slice) {
    const Range rests = Both(RangeOfPart(unit, part), slice);
    for (Piece share = shares; share.index < shares.count; ++share.index) {
      largest =
          std::max(largest, StateElementsIn(states, SliceAt(rests, share)));
    }
  });
  return largest;
}

int64_t LargestDuty(const Plan& plan, const Placement& placement, int part,
                    int rank) {
  const int64_t elements =
      std::min(RangeOfPart(UnitOf(plan, placement), part).size(),
               LargestAtRest(plan, StretchWith(plan, placement, part), rank));
  return LargestEvenSlice(plan, SharedOf(placement.parts(part)), elements);
}

}  // namespace troupe
