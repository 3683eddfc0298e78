// Where a unit's parameters lie in its flat buffers: one behind the other, each
// beginning where FlatAligned lets it (proto/plan/unit_builder.h).
#ifndef TROUPE_SCHEDULER_LAYOUTS_APPEND_TO_FLAT_H_
#define TROUPE_SCHEDULER_LAYOUTS_APPEND_TO_FLAT_H_

#include <cstdint>
#include <vector>

#include "proto/unit.pb.h"

namespace troupe {

// Lays these parameters, by index, behind what the unit has in
// flat_elements() so far. Returns how many elements they take.
int64_t AppendToFlat(const std::vector<int>& parameters, Unit& unit);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_APPEND_TO_FLAT_H_
