// A unit that computes nothing and takes the time that the plan gives it. Jobs
// of such units show what a schedule costs, bubbles and transfers included, on
// a machine with far fewer cores than ranks.
//
// A pass ends when its Work.wait_seconds have gone by since it began, however
// late the processor came to it in between; the thread sleeps, so that others
// may run. What it would compute it writes, as zeros: activations and gradients
// of their true size. Gradients of parameters stay as they are. A unit
// counts its tokens in the sums that it adds to (Unit.addends), as the last one
// of a model does.
#ifndef TROUPE_WORKER_MODEL_SYNTHETIC_UNIT_H_
#define TROUPE_WORKER_MODEL_SYNTHETIC_UNIT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/sums.h"
#include "worker/model/model_unit.h"

namespace troupe {

struct SyntheticUnitOptions {
  Unit unit;
  int64_t input_bytes = 0;            // activation_bytes of the unit before
  int64_t tokens = 0;                 // of a micro-batch
  std::vector<SumPlace> counts = {};  // to each element of which it adds them
};

// REQUIRES a unit of kind SYNTHETIC.
std::unique_ptr<ModelUnit> NewSyntheticUnit(
    const SyntheticUnitOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_SYNTHETIC_UNIT_H_
