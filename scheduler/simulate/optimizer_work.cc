#include "scheduler/simulate/optimizer_work.h"

#include <algorithm>
#include <cstdint>

#include "proto/plan/at_rest.h"
#include "proto/plan/mesh.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/slices.h"
#include "proto/plan/trained.h"

namespace troupe {

double MatrixStepFlops(const Plan& plan, const Placement& placement, int rank) {
  const OptimizerSpec& optimizer = plan.job().optimizer();
  const Unit& unit = plan.units(placement.unit());
  double flops = 0;
  for (int p = 0; p < TrainedParts(unit); ++p) {
    const auto flops_of =
        RowOfRule(optimizer, unit.parts(p).rule()).product_flops;
    if (flops_of == nullptr) continue;
    const double stored = ShareAtRest(plan, placement, p, rank);
    const Range range = RangeOfPart(unit, p);
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.offset() < range.begin || parameter.offset() >= range.end) {
        continue;
      }
      const auto [count, rows, columns] = MatricesOf(parameter);
      flops += static_cast<double>(count) * flops_of(rows, columns) * stored;
    }
  }
  return flops;
}

double ShareReadAgain(const Plan& plan, const Unit& unit) {
  int64_t elements = 0;
  for (const RuleRange& range : RuleRanges(unit)) {
    if (RowOfRule(plan.job().optimizer(), range.rule).reads_again) {
      elements += range.range.size();
    }
  }
  return static_cast<double>(elements) /
         static_cast<double>(std::max<int64_t>(1, TrainedElements(unit)));
}

}  // namespace troupe
