#include "proto/plan/at_rest.h"

#include <algorithm>
#include <vector>

#include "proto/plan/groups.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/precision.h"
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

// The rank's slice of a range that is dealt over the group.
Range SliceOver(const Plan& plan, int group, const Range& range, int rank) {
  return SliceAt(range, PieceOf(plan.mesh(), plan.groups(group), rank));
}

// The first of as many pieces as the group has ranks, or of one.
Piece SlicesOf(const Plan& plan, const absl::optional<int>& group) {
  return {.index = 0,
          .count = group.has_value()
                       ? GroupSize(plan.mesh(), plan.groups(*group))
                       : 1};
}

// The largest of such slices, which is the first.
int64_t LargestSlice(const Plan& plan, const absl::optional<int>& group,
                     int64_t elements) {
  return EvenLines(elements, SlicesOf(plan, group)).size();
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

int64_t LargestAtRest(const Plan& plan, const Placement& placement,
                      bool frozen) {
  int64_t elements = 0;
  for (const Stretch& stretch : StretchesOf(plan, placement)) {
    if (stretch.frozen == frozen) elements += LargestAtRest(plan, stretch);
  }
  return elements;
}

}  // namespace

int64_t BytesOfFlat(const TrainingSpec& training, Buffer::Kind kind) {
  switch (kind) {
    case Buffer::PARAMETERS:
    case Buffer::UNSHARDED_PARAMETERS:
      return BytesOfElement(ComputeType(training));
    case Buffer::PARAMETER_GRADIENTS:
    case Buffer::UNSHARDED_GRADIENTS:
      return BytesOfElement(GradientType(training));
    case Buffer::MASTER_WEIGHTS:
    case Buffer::OPTIMIZER_STATE:
      return BytesOfElement(F32);
    default:
      return 0;
  }
}

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
  return stretch.dealt.has_value()
             ? SliceOver(plan, *stretch.dealt, stretch.all, rank)
             : stretch.all;
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
  return SliceOver(plan, with.shared(), rests, rank);
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

int64_t LargestAtRest(const Plan& plan, const Stretch& stretch) {
  return LargestSlice(plan, stretch.dealt, stretch.all.size());
}

int64_t LargestTrainedAtRest(const Plan& plan, const Placement& placement) {
  if (KeepsNoState(placement)) return 0;
  return LargestAtRest(plan, placement, /*frozen=*/false);
}

int64_t LargestFrozenAtRest(const Plan& plan, const Placement& placement) {
  return LargestAtRest(plan, placement, /*frozen=*/true);
}

int64_t LargestStateAtRest(const Plan& plan, const Placement& placement) {
  const std::vector<UnitState> states =
      UnitStates(plan.job().optimizer(), UnitOf(plan, placement));
  const bool prefixes = AllPrefixes(states);
  int64_t elements = 0;
  for (const Stretch& stretch : StretchesOf(plan, placement)) {
    if (stretch.frozen) continue;
    const Piece slices = SlicesOf(plan, stretch.dealt);
    int64_t largest = StateElementsIn(states, SliceAt(stretch.all, slices));
    // Of prefixes the first slice has the most.
    for (Piece slice = slices; !prefixes && slice.index < slices.count;
         ++slice.index) {
      largest = std::max(largest,
                         StateElementsIn(states, SliceAt(stretch.all, slice)));
    }
    elements += largest;
  }
  return elements;
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
  const Stretch stretch = StretchWith(plan, placement, part);
  const Piece slices = SlicesOf(plan, stretch.dealt);
  const Piece shares = SlicesOf(plan, SharedOf(placement.parts(part)));
  int64_t largest = 0;
  for (Piece slice = slices; slice.index < slices.count; ++slice.index) {
    const Range rests =
        Both(RangeOfPart(unit, part), SliceAt(stretch.all, slice));
    for (Piece share = shares; share.index < shares.count; ++share.index) {
      largest =
          std::max(largest, StateElementsIn(states, SliceAt(rests, share)));
    }
  }
  return largest;
}

int64_t LargestDuty(const Plan& plan, const Placement& placement, int part) {
  const int64_t elements =
      std::min(RangeOfPart(UnitOf(plan, placement), part).size(),
               LargestAtRest(plan, StretchWith(plan, placement, part)));
  return LargestSlice(plan, SharedOf(placement.parts(part)), elements);
}

}  // namespace troupe
