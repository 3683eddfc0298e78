// What the ranks of a stage do for each of their units. Within a stage and a
// replica the mesh has factors, which are its axes but "pipeline", "data" and
// "expert", which has its ranks from data. The job's parallelism says what each
// factor is for; a strategy says it for some units. Sizes stand in one order,
// that of the mesh:
//
//   parallelism: {pipeline: 2, tensor: 2,    the factor "tensor" cuts columns
//                 strategies: [{stage: 1,
//                               batch: 2}]}  of stage 0, and samples in stage 1
#ifndef TROUPE_PROTO_PLAN_STRATEGIES_H_
#define TROUPE_PROTO_PLAN_STRATEGIES_H_

#include <string>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// The job's parallelism as it would be if all units did what the strategy says.
// What is no way to share a unit (pipeline, data, zero) is the job's.
ParallelismSpec WithStrategy(const ParallelismSpec& job,
                             const StrategySpec& strategy);

// Where the job itself shares stages among no ranks, all units that no strategy
// names do what the first strategy says.
void AdoptFirstStrategy(ParallelismSpec& parallelism);

// By unit: the strategy that holds for it, an index into `strategies`; -1: none
// does. Stages are looked at where a strategy names one.
std::vector<int> StrategyOfUnits(
    const ParallelismSpec& parallelism, const std::vector<Unit::Kind>& units,
    const google::protobuf::RepeatedPtrField<Stage>& stages);
template <typename Units>
std::vector<Unit::Kind> KindsOf(const Units& units) {
  std::vector<Unit::Kind> kinds;
  for (const Unit& unit : units) kinds.push_back(unit.kind());
  return kinds;
}

// Words that a strategy may have for units, besides their numbers.
std::vector<std::string> UnitWords();

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_STRATEGIES_H_
