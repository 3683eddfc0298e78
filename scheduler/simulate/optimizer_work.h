// What STEP does beyond reading and writing each element once.
#ifndef TROUPE_SCHEDULER_SIMULATE_OPTIMIZER_WORK_H_
#define TROUPE_SCHEDULER_SIMULATE_OPTIMIZER_WORK_H_

#include "proto/plan.pb.h"

namespace troupe {

// FLOPs of the products of a STEP whose rules have any (OptimizerRow);
// where slices have some of them each, the rank's share. REQUIRES the unit's
// parts.
double MatrixStepFlops(const Plan& plan, const Placement& placement, int rank);

// The share of a unit's trained elements whose rule reads gradients three times
// more, for sums over rows, over columns and over all, and weights once more
// (OptimizerRow.reads_again).
double ShareReadAgain(const Plan& plan, const Unit& unit);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_OPTIMIZER_WORK_H_
