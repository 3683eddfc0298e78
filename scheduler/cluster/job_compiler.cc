#include "scheduler/cluster/job_compiler.h"

#include <utility>

#include "proto/plan/find_program.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"

namespace troupe {

CompiledJob MakeCompiledJob(Plan plan, Timeline predicted) {
  CompiledJob compiled;
  compiled.loads_data.resize(MeshSize(plan.mesh()));
  for (const Role& role : plan.roles()) {
    const bool loads = LoadsData(role);
    for (const int rank : RanksOf(plan.mesh(), role)) {
      compiled.loads_data[rank] = loads;
    }
  }
  google::protobuf::RepeatedPtrField<Role> roles;
  roles.Swap(plan.mutable_roles());
  compiled.outline = std::make_shared<const Plan>(plan);
  roles.Swap(plan.mutable_roles());
  compiled.plan = std::make_shared<const Plan>(std::move(plan));
  compiled.predicted = std::move(predicted);
  return compiled;
}

}  // namespace troupe
