// What of a unit's gradients a REDUCE_GRADS sums: of one unit the parts
// [part, part + part_count), of each of several units all that is trained.
#ifndef TROUPE_PROTO_PLAN_REDUCED_RANGE_H_
#define TROUPE_PROTO_PLAN_REDUCED_RANGE_H_

#include <algorithm>

#include "proto/plan.pb.h"
#include "proto/plan/layout.h"
#include "proto/plan/slices.h"
#include "proto/plan/trained.h"

namespace troupe {

// Elements of the unit's flat buffer. REQUIRES check_shape, and that the unit
// is one of the instruction's.
inline Range ReducedRange(const Unit& unit, const Instruction& reduce) {
  if (reduce.unit_count() > 1) return TrainedRange(unit);
  const int last = reduce.part() + std::max(1, reduce.part_count()) - 1;
  return {.begin = RangeOfPart(unit, reduce.part()).begin,
          .end = RangeOfPart(unit, last).end};
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_REDUCED_RANGE_H_
