// How long a pass over a unit takes on nobody's machine in particular: for what
// must not depend on the machines of a job (its plan's fingerprint says that
// two plans are the same), as the balance of stages and the order of transfers.
// The cost model of scheduler/simulate is for predictions.
#ifndef TROUPE_SCHEDULER_PASSES_NOMINAL_COST_H_
#define TROUPE_SCHEDULER_PASSES_NOMINAL_COST_H_

#include "proto/plan.pb.h"

namespace troupe {

// Seconds, at rates in the proportions that devices have: a byte of a
// memory-bound pass costs as much as 30 flops of a product, attention runs at
// half the rate of products. Never zero.
double NominalSeconds(const Work& work);

// Of all passes over one micro-batch.
double NominalSeconds(const Unit& unit);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_NOMINAL_COST_H_
