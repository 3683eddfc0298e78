// Which elements of a unit's flat buffer are trained. Trained parts lie before
// frozen ones, so they are one range, which begins where the buffer does:
// gradients, optimizer states and master weights are buffers of just that
// range, and an element has the same offset in all of them.
//
//   flat buffer     | trained | frozen |     PARAMETERS
//   of each state   | trained |              PARAMETER_GRADIENTS, ...
//
// All in elements. REQUIRE the unit's parts.
#ifndef TROUPE_PROTO_PLAN_TRAINED_H_
#define TROUPE_PROTO_PLAN_TRAINED_H_

#include <cstdint>

#include "proto/plan/layout.h"
#include "proto/unit.pb.h"

namespace troupe {

// How many are trained.
inline int64_t TrainedElements(const Unit& unit) {
  int64_t elements = 0;
  for (const Unit::Part& part : unit.parts()) {
    if (!part.frozen()) elements += part.elements();
  }
  return elements;
}

// How many parts are trained: the first ones.
inline int TrainedParts(const Unit& unit) {
  int parts = 0;
  for (const Unit::Part& part : unit.parts()) parts += part.frozen() ? 0 : 1;
  return parts;
}

// [0, TrainedElements), and those behind it.
inline Range TrainedRange(const Unit& unit) {
  return {.begin = 0, .end = TrainedElements(unit)};
}
inline Range FrozenRange(const Unit& unit) {
  return {.begin = TrainedElements(unit), .end = unit.flat_elements()};
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_TRAINED_H_
