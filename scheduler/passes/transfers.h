// What the ranks of a pipeline send one another in a compute order, in an order
// that all of them keep.
//
// A SEND and its RECV hold a lane on both ranks until both are there, so lanes
// that list them in different orders can wait for one another in a circle. Here
// all transfers of all ranks stand in one list, by the time at which a dry run
// has what they carry; each rank's lanes are parts of that list. Then the first
// transfer that is not done can always be done: whatever it waits for stands
// before it. The dry run's transfers take some time, so a rank is a little
// behind the one before it: it receives the next micro-batch before it sends
// the last on, and no transfer waits for another one of a balanced pipeline.
#ifndef TROUPE_SCHEDULER_PASSES_TRANSFERS_H_
#define TROUPE_SCHEDULER_PASSES_TRANSFERS_H_

#include <vector>

#include "scheduler/passes/draft.h"
#include "scheduler/passes/dry_run.h"

namespace troupe {

// An ACTIVATION or GRADIENT of `unit`: between its stage and one that reads it,
// whichever lie between them.
struct StageTransfer {
  bool gradient = false;
  int from = 0;  // pipeline ranks
  int to = 0;
  int unit = 0;
  int output = 0;  // Buffer.output
  int micro_batch = 0;
  int ahead = 0;
  double time = 0;  // when the dry run has it
};

// `homes` is the order that says where a stage's micro-batches are computed:
// `order` itself, but for programs that leave the receiver's part to a later
// one.
std::vector<StageTransfer> TransfersOf(
    const Draft& draft, const ComputeOrder& order, const ComputeOrder& homes,
    const std::vector<std::vector<StepTimes>>& times);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_TRANSFERS_H_
