// How many rows the busiest of the ranks that share experts is expected to get.
// Where rows go is known only when the router has spoken. A step takes as long
// as the busiest rank: predictions count its work, with an even load or with
// one that an earlier run has measured (ExpertsSpec.load).
#ifndef TROUPE_PROTO_PLAN_EXPERT_LOAD_H_
#define TROUPE_PROTO_PLAN_EXPERT_LOAD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/plan.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// Rows of the busiest rank over those of an even load. `load`: of each expert,
// in any unit. Each of the `ranks` has as many neighbouring experts. REQUIRES
// ranks that divide the experts, and a load above 0.
double BusiestOverEven(absl::Span<const double> load, int ranks);

// Sets TensorSpec.expected_rows of every round of a table: the busiest rank
// gets busiest_over_even times the rows of an even load, the first of them in
// the first round. Does nothing to a table without rounds.
void ExpectRows(double busiest_over_even, UnitTable& table);

// As model.experts.measured says, of each table the mean of its layers; nothing
// where the load is uniform. InvalidArgument, beginning with the field: a layer
// that it does not say, or that has another number of experts. REQUIRES units
// that all axes have cut.
absl::Status ExpectMeasuredLoad(Plan& plan);

// Ranks that share the experts of a table's layers; 0: it has no such layers.
int RanksOfExperts(const UnitTable& table);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_EXPERT_LOAD_H_
