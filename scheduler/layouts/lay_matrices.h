// Rules whose updates are of whole matrices (Muon): where a unit is stored in
// slices over ranks (ZeRO), each of its matrices lies within one slice, so that
// one rank updates it. Slices stay as they are, even or in proportion to
// weights, and collectives know nothing of it: gaps in the flat buffer, which
// are zeros like those of alignment, make up for what matrices leave of a
// slice.
//
//   two ranks   | norms | a     | gap | b | c | gap |
//               |      slice 0        |   slice 1   |
#ifndef TROUPE_SCHEDULER_LAYOUTS_LAY_MATRICES_H_
#define TROUPE_SCHEDULER_LAYOUTS_LAY_MATRICES_H_

#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// InvalidArgument "optimizer.groups[1].name: ...": a parameter that such a rule
// has is no matrix, or ranks have a part of it each. REQUIRES LayParts.
absl::Status CheckMatrices(const OptimizerSpec& optimizer, const Unit& unit);

// Trained parts of a unit, in a row, that rest in slices over `ranks` ranks.
struct SlicedParts {
  int part = 0;  // the first
  int part_count = 0;
  int ranks = 1;
  std::vector<int> weights = {};    // of their slices; none: even ones
  const char* field = "zero_size";  // of parallelism, which says how many
};

// Lays these parts. Does nothing where they have no such rule. InvalidArgument
// "parallelism.zero_size: ...", or of the other field: the slices would be more
// gaps than anything else. REQUIRES CheckMatrices.
absl::Status LayMatrices(const OptimizerSpec& optimizer,
                         const SlicedParts& parts, Unit& unit);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_LAY_MATRICES_H_
