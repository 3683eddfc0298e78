#include "scheduler/planner/part_states.h"

#include "proto/plan/mesh.h"
#include "proto/plan/precision.h"
#include "scheduler/tiers/offload.h"

namespace troupe {
namespace {

// Replicas have samples of their own, so each has a summand of the gradients.
void ShareOverReplicas(const Mesh& mesh, Unit::Part& part) {
  const int replicas = AxisSize(mesh, kReplicaAxis);
  if (replicas == 1) return;
  Unit::Part::Share& share = *part.add_shares();
  share.set_axis(kReplicaAxis);
  share.set_copies(replicas);
  share.set_summed(true);
}

Unit::Part::Tiers TiersOf(const MemorySpec& memory) {
  Unit::Part::Tiers tiers;
  tiers.set_parameters(RestsIn(memory, Buffer::PARAMETERS));
  tiers.set_gradients(RestsIn(memory, Buffer::PARAMETER_GRADIENTS));
  tiers.set_states(RestsIn(memory, Buffer::OPTIMIZER_STATE));
  return tiers;
}

}  // namespace

void SetPartStates(const Plan& plan, UnitList& units) {
  const JobSpec& job = plan.job();
  for (Unit& unit : units.units) {
    for (Unit::Part& part : *unit.mutable_parts()) {
      part.set_dtype(ComputeType(job.training()));
      part.set_gradient_dtype(GradientType(job.training()));
      *part.mutable_tiers() = TiersOf(job.memory());
      ShareOverReplicas(plan.mesh(), part);
    }
  }
}

}  // namespace troupe
