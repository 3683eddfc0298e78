// Lists the plan's sums: first those of every plan, then, unit by unit, what
// ops and units declare that they add to (proto/plan/sums.h). So an op that
// needs another sum says so in the row of its kind of op, and nowhere else.
#ifndef TROUPE_SCHEDULER_PASSES_DECLARE_SUMS_H_
#define TROUPE_SCHEDULER_PASSES_DECLARE_SUMS_H_

#include <vector>

#include "proto/plan/sums.h"
#include "scheduler/passes/draft.h"

namespace troupe {

void DeclareSums(Draft& draft);

// Where in SCALARS what a unit adds to lies, once that is declared: ascending,
// sums that lie behind one another as one.
std::vector<SumPlace> SumRuns(const Plan& plan, int unit,
                              const std::vector<Unit::Addend>& addends);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_DECLARE_SUMS_H_
