#include "scheduler/cluster/job_compiler.h"

#include <utility>

#include "proto/plan/find_program.h"

namespace troupe {
CompiledJob MakeCompiledJob(Plan plan, Timeline predicted) {
  CompiledJob compiled;
  for (const RankPlan& rank : plan.ranks()) {
    compiled.loads_data.push_back(LoadsData(rank));
  }
  google::protobuf::RepeatedPtrField<RankPlan> ranks;
  ranks.Swap(plan.mutable_ranks());
  compiled.outline = std::make_shared<const Plan>(plan);
  ranks.Swap(plan.mutable_ranks());
  compiled.plan = std::make_shared<const Plan>(std::move(plan));
  compiled.predicted = std::move(predicted);
  return compiled;
}

}  // namespace troupe
