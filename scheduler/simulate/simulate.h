// What will a step take? The simulator runs the plan's programs with virtual
// time (run_programs.h), for as long as the cost model says: a collective
// starts when every member has reached it, a SEND when its RECV has been
// reached too, and each holds its lane until then, as on the real thing. Out
// comes a Timeline of the same form as a measured one, so prediction against
// reality is a difference of two.
#ifndef TROUPE_SCHEDULER_SIMULATE_SIMULATE_H_
#define TROUPE_SCHEDULER_SIMULATE_SIMULATE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/plan_limits.h"
#include "proto/timeline.pb.h"
#include "scheduler/simulate/links.h"
#include "scheduler/simulate/run_programs.h"

namespace troupe {

class CostModel;

// How long an instruction of a rank takes, once it runs: for a collective, once
// every member has reached it.
using InstructionTime =
    std::function<int64_t(int rank, const Instruction& instruction)>;  // ns

// Runs one program of every rank, from a standing start. REQUIRES
// CheckPrograms(plan), as all below.
Timeline Simulate(const Plan& plan, Program::Kind kind,
                  const InstructionTime& time);

// A step in the middle of many: of training, or of an evaluation. Where no rank
// waits for the others at the end of a step, steps overlap, and asynchronous
// pipelines take some to settle; so FILL and TRAIN programs run back to back
// until steps take equally long.
struct SteadyStep {
  int64_t period_ns = 0;  // from one step to the next
  // Since the first rank began the step; of ranks that do the same at the same
  // time, the first.
  std::vector<RankTimes> ranks;
  std::vector<int> like;  // by rank: which of `ranks` it is like
  // Too many ranks differ: the first of each role was taken for all of it.
  bool one_for_each_role = false;
};
SteadyStep SimulateSteps(const Plan& plan, const InstructionTime& time);

// The same on these workers (workers[r] fills rank r), whose costs are these;
// or with links that are so much faster. However many machines differ, no more
// than `instructions_max` are simulated, unless the roles alone have more.
SteadyStep PredictStep(const Plan& plan,
                       const std::vector<WorkerDescription>& workers,
                       const CostModel& costs,
                       int64_t instructions_max = kSimulatedInstructionsMax);
SteadyStep PredictStep(const Plan& plan,
                       const std::vector<WorkerDescription>& workers,
                       const LinkGain& gain = {});

// How long all ranks take to copy their state for the recovery of the job; 0:
// they do not.
int64_t PredictKeepNs(const Plan& plan,
                      const std::vector<WorkerDescription>& workers,
                      const CostModel& costs);

// What a rank does in its program of this kind, which others like it (`times`)
// may have been simulated for.
RankTimeline TimelineOf(const Plan& plan, int rank, const RankTimes& times,
                        Program::Kind kind);

// A step as a timeline, of the ranks that are traced
// (proto/plan/traced_ranks.h): the first of them that have spans_max spans in
// all, one at least.
Timeline StepTimeline(const Plan& plan, const SteadyStep& step,
                      int64_t spans_max = kTimelineSpansMax);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_SIMULATE_H_
