// From the units of a plan to units that compute.
//
//   ASSIGN_OR_RETURN(auto units, BuildUnits(plan));
//   units[u]->Forward(...);   // u as in the plan's instructions
//
// To add an architecture: its units, and one row of the table in
// build_units.cc.
#ifndef TROUPE_WORKER_MODEL_BUILD_UNITS_H_
#define TROUPE_WORKER_MODEL_BUILD_UNITS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "worker/model/model_unit.h"
#include "worker/model/unit_options.h"

namespace troupe {

// All units of the model, in the order of `units`, which are ModelUnits of
// `model` and `options.shape`. They cost nothing until called, so a rank may
// build those too that it does not hold. InvalidArgument where `units` and this
// build disagree on names, shapes or bytes, or about the architecture.
absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> BuildUnits(
    const ModelSpec& model, const std::vector<Unit>& units,
    const BuildUnitsOptions& options);

// The same for a plan: its job's micro-batch shape, precision, dropout and
// seed.
absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> BuildUnits(
    const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_BUILD_UNITS_H_
