// What will a step take? The simulator runs the plan's TRAIN programs with
// virtual time: each rank's ReadyQueue says what may start, the cost model how
// long it takes, and a collective starts when every member has reached it,
// holding its lane until then, as on the real thing. Out comes a Timeline of
// the same form as a measured one, so prediction against reality is a
// difference of two.
#ifndef TROUPE_SCHEDULER_SIMULATE_SIMULATE_H_
#define TROUPE_SCHEDULER_SIMULATE_SIMULATE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "proto/timeline.pb.h"

namespace troupe {

// How long an instruction of a rank takes, once it runs: for a collective, once
// every member has reached it.
using InstructionTime =
    std::function<int64_t(int rank, const Instruction& instruction)>;  // ns

// Runs one program of every rank. REQUIRES CheckPrograms(plan).
Timeline Simulate(const Plan& plan, Program::Kind kind,
                  const InstructionTime& time);

// The timeline of a training step on these workers (workers[r] fills rank r).
Timeline PredictTimeline(const Plan& plan,
                         const std::vector<WorkerDescription>& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_SIMULATE_H_
