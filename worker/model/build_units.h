// From the units of a plan to units that compute.
//
//   ASSIGN_OR_RETURN(auto units, BuildUnits(plan));
//   units[u]->Forward(...);   // u as in the plan's instructions
//
// What a unit does is in the plan (UnitTable), so that nothing here knows
// architectures.
#ifndef TROUPE_WORKER_MODEL_BUILD_UNITS_H_
#define TROUPE_WORKER_MODEL_BUILD_UNITS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/plan.pb.h"
#include "proto/plan/micro_batch.h"
#include "proto/plan/slices.h"
#include "proto/plan/sums.h"
#include "proto/plan/unit_list.h"
#include "worker/model/model_unit.h"

namespace troupe {

struct BuildUnitsOptions {
  MicroBatchShape shape;    // for which the units were listed
  uint64_t seed = 0;        // of the job
  MeshPlace place;          // of the rank, where units are cut over ranks
  Sums sums = FirstSums();  // Plan.sums
};

// All units of the model, in order. They cost nothing until called, so a rank
// may build those too that it does not hold. REQUIRES units as ModelUnits lists
// them; InvalidArgument where their parameters are of other shapes than the ops
// need.
absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> BuildUnits(
    const UnitList& units, const BuildUnitsOptions& options);

// The same for a rank of a plan: its job's micro-batch shape and seed.
// FailedPrecondition where the plan's units are not as CheckUnits wants them.
absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> BuildUnits(
    const Plan& plan, int rank);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_BUILD_UNITS_H_
