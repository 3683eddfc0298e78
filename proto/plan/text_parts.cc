#include "proto/plan/text_parts.h"

#include <set>

#include "proto/plan/mesh.h"

namespace troupe {

const Stage& StageOfText(const TextPlan& plan, int rank) {
  return plan.stages(CoordinateOn(plan.mesh(), "pipeline", rank));
}

std::vector<int> UnitsOfText(const TextPlan& plan, int rank) {
  const Stage& stage = StageOfText(plan, rank);
  std::set<int> units;
  for (int u = stage.unit(); u < stage.unit() + stage.unit_count(); ++u) {
    units.insert(u);
    for (const Unit::Tied& tied : plan.units(u).tied()) {
      units.insert(tied.unit());
    }
  }
  return {units.begin(), units.end()};
}

}  // namespace troupe
