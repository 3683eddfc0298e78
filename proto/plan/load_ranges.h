// Which elements of a unit's flat buffer are weights, with gradients that an
// optimizer uses, and which are state of a router, in whose gradients' place
// choices are counted (Parameter.load). Ranges ascend; gaps
// between parameters are among the weights.
#ifndef TROUPE_PROTO_PLAN_LOAD_RANGES_H_
#define TROUPE_PROTO_PLAN_LOAD_RANGES_H_

#include <vector>

#include "proto/plan/layout.h"
#include "proto/unit.pb.h"

namespace troupe {

// Of the elements `of`; all of them, where the unit has no such state.
std::vector<Range> WeightRanges(const Unit& unit, const Range& of);

struct LoadRange {
  Range range;
  Parameter::Load load;
};
// Of the same, without frozen ones.
std::vector<LoadRange> LoadRanges(const Unit& unit, const Range& of);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_LOAD_RANGES_H_
