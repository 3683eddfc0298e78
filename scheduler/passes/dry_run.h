// When would each step of a compute order run, on machines of nominal speed, or
// of speeds in the proportion that the draft knows, where a transfer takes a
// little of the shortest step? From this, transfers
// get one order that all ranks agree on (transfers.h).
//
// Where ranks go from one program to the next without waiting for the others,
// they come to differ in when they begin one: then the order is run several
// times over, and the last run counts.
//
// A forward waits for the same micro-batch's forward of the stage before, a
// backward-input for that of the stage after (or, where it is one pass with its
// backward-weight, for all of that) and for its own forward; and each for what
// stands before it on its rank.
#ifndef TROUPE_SCHEDULER_PASSES_DRY_RUN_H_
#define TROUPE_SCHEDULER_PASSES_DRY_RUN_H_

#include <vector>

#include "scheduler/passes/draft.h"

namespace troupe {

// Seconds since the first program began.
struct StepTimes {
  double start = 0;
  double end = 0;
  double gives = 0;  // what other ranks wait for is there
};

// Of one pipeline of the mesh: result[pipeline rank][index in its order]. Steps
// that wait for one another for ever come last, in the order of the list:
// check_program will say what is wrong with them.
std::vector<std::vector<StepTimes>> DryRun(const Draft& draft,
                                           const ComputeOrder& order,
                                           int runs = 1);

// The number of runs of the training step's order after which its ranks are as
// far apart as they get.
int RunsUntilSteady(const Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_DRY_RUN_H_
