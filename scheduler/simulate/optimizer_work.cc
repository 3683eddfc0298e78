#include "scheduler/simulate/optimizer_work.h"

#include <algorithm>
#include <cstdint>

#include "proto/plan/at_rest.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/slices.h"
#include "proto/plan/trained.h"

namespace troupe {

double MatrixStepFlops(const Plan& plan, const Placement& placement) {
  constexpr double kIterations = 5;
  const OptimizerSpec& optimizer = plan.job().optimizer();
  const Unit& unit = plan.units(placement.unit());
  double flops = 0;
  for (int p = 0; p < TrainedParts(unit); ++p) {
    if (NameOfRule(optimizer, unit.parts(p).rule()) != "muon") continue;
    const Placement::Part& part = placement.parts(p);
    const int slices = part.has_dealt()
                           ? GroupSize(plan.mesh(), plan.groups(part.dealt()))
                           : 1;
    const Range range = RangeOfPart(unit, p);
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.offset() < range.begin || parameter.offset() >= range.end) {
        continue;
      }
      const auto [count, rows, columns] = MatricesOf(parameter);
      const double side = static_cast<double>(std::min(rows, columns));
      const double length = static_cast<double>(std::max(rows, columns));
      flops += static_cast<double>(count) * kIterations *
               (4 * side * side * length + 2 * side * side * side) / slices;
    }
  }
  return flops;
}

double ShareReadAgain(const Plan& plan, const Unit& unit) {
  int64_t elements = 0;
  for (const RuleRange& range : RuleRanges(unit)) {
    if (UpdatesVectors(plan.job().optimizer(), range.rule)) {
      elements += range.range.size();
    }
  }
  return static_cast<double>(elements) /
         static_cast<double>(std::max<int64_t>(1, TrainedElements(unit)));
}

}  // namespace troupe
