// When would each step of a compute order run, on machines of nominal speed and
// with transfers that cost nothing? From this, transfers get one order that all
// ranks agree on (transfers.h).
//
// A forward waits for the same micro-batch's forward of the stage before, a
// backward-input for that of the stage after and for its own forward, a
// backward-weight for its backward-input; and each for what stands before it on
// its rank.
#ifndef TROUPE_SCHEDULER_PASSES_DRY_RUN_H_
#define TROUPE_SCHEDULER_PASSES_DRY_RUN_H_

#include <vector>

#include "scheduler/passes/draft.h"

namespace troupe {

// Seconds since the program began.
struct StepTimes {
  double start = 0;
  double end = 0;
};

// Of one pipeline of the mesh: result[pipeline rank][index in its order]. Steps
// that wait for one another for ever come last, in the order of the list:
// check_program will say what is wrong with them.
std::vector<std::vector<StepTimes>> DryRun(const Draft& draft,
                                           const ComputeOrder& order);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_DRY_RUN_H_
