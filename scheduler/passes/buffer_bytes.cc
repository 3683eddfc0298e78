#include "scheduler/passes/buffer_bytes.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/batch.h"
#include "proto/plan/copies.h"
#include "proto/plan/edges.h"
#include "proto/plan/islands.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/outer_change.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/sums.h"
#include "proto/plan/trained.h"
#include "scheduler/layouts/zero.h"

namespace troupe {
namespace {

constexpr int64_t kBytesOfF32 = 4;

int64_t WorkspaceBytes(const Plan& plan, const Role& role) {
  int64_t bytes = 0;
  for (const Placement& placement : role.placements()) {
    const Unit& unit = plan.units(placement.unit());
    const int64_t of_passes =
        Serves(placement) ? 0 : unit.workspace_bytes();  // it has none
    bytes = std::max(
        {bytes, of_passes, StepWorkspaceBytes(plan.job().optimizer(), unit)});
    if (HasIslands(plan)) {
      bytes =
          std::max(bytes, ChangeWorkspaceBytes(plan, placement,
                                               FirstRankOf(plan.mesh(), role)));
    }
  }
  return bytes;
}

// Of weights and optimizer states what a rank has to write, at most.
int64_t CopiedElements(const Plan& plan, const Placement& placement, int rank) {
  const Unit& unit = plan.units(placement.unit());
  int64_t duties = 0;
  for (int p = 0; p < TrainedParts(unit); ++p) {
    duties += LargestDuty(plan, placement, p, rank) +
              LargestStateDuty(plan, placement, p, rank);
  }
  return std::min(duties, LargestTrainedAtRest(plan, placement, rank) +
                              LargestStateAtRest(plan, placement, rank));
}

}  // namespace

bool RestsInSlices(const Plan& plan, const Role& role, Buffer::Kind kind,
                   int unit) {
  if (HasServers(plan)) {
    const bool of_unit =
        kind == Buffer::MASTER_WEIGHTS || kind == Buffer::OPTIMIZER_STATE ||
        kind == Buffer::PARAMETER_GRADIENTS || kind == Buffer::PARAMETERS;
    return of_unit && Serves(*FindPlacement(role, unit));
  }
  const ZeroRow row = ZeroRowOf(plan.job().parallelism());
  bool in_slices = false;
  switch (kind) {
    case Buffer::MASTER_WEIGHTS:
    case Buffer::OPTIMIZER_STATE:
      in_slices = row.states;
      break;
    case Buffer::PARAMETER_GRADIENTS:
      in_slices = row.gradients;
      break;
    case Buffer::PARAMETERS:
      in_slices = row.parameters;
      break;
    default:
      break;
  }
  return in_slices && IsDealt(*FindPlacement(role, unit));
}

int64_t BufferBytes(const Plan& plan, const Role& role, Buffer::Kind kind,
                    int unit, int output) {
  const auto rank = [&] { return FirstRankOf(plan.mesh(), role); };
  const auto of_flat = [&] { return BytesOfFlat(plan.units(unit), kind); };
  const auto dealt = [&](DealtParts of) {
    return DealtElements(plan, *FindPlacement(role, unit), of);
  };
  const auto trained = [&] {
    return RestsInSlices(plan, role, kind, unit)
               ? LargestTrainedAtRest(plan, *FindPlacement(role, unit), rank())
               : TrainedElements(plan.units(unit));
  };
  const auto frozen = [&] {
    return RestsInSlices(plan, role, kind, unit)
               ? LargestFrozenAtRest(plan, *FindPlacement(role, unit), rank())
               : FrozenRange(plan.units(unit)).size();
  };
  switch (kind) {
    case Buffer::BATCH:
      return BatchBytes(plan);
    case Buffer::SCALARS:
      return SumsBytes(plan);
    case Buffer::WORKSPACE:
      return unit < 0
                 ? WorkspaceBytes(plan, role)
                 : StepWorkspaceBytes(plan.job().optimizer(), plan.units(unit));
    case Buffer::ACTIVATION:
      return OutputBytes(plan, unit, output);
    case Buffer::GRADIENT:  // from a unit behind, which the last one lacks
      return unit + 1 < plan.units_size() ? OutputBytes(plan, unit, output) : 0;
    case Buffer::STASH:
      return plan.units(unit).stash_bytes();
    case Buffer::WEIGHT_STASH:
      return plan.units(unit).weight_stash_bytes();
    case Buffer::SEGMENT_VALUES:
      return plan.units(unit).segment_bytes();
    case Buffer::SEGMENT_GRADIENTS:
      return plan.units(unit).segment_gradient_bytes();
    case Buffer::RECOMPUTED:
      return plan.units(unit).recomputed_bytes();
    case Buffer::PARAMETERS:
      return (trained() + frozen()) * of_flat();
    case Buffer::UNSHARDED_PARAMETERS:
      return dealt(DealtParts::kAll) * of_flat();
    case Buffer::PARAMETER_GRADIENTS:
    case Buffer::MASTER_WEIGHTS:
      return trained() * of_flat();
    case Buffer::UNSHARDED_GRADIENTS:
      return dealt(DealtParts::kTrained) * of_flat();
    case Buffer::PUSHED_GRADIENTS: {
      const Placement& placement = *FindPlacement(role, unit);
      return ReplicasServed(plan, placement) * PushedStride(plan, placement) *
             BytesOfElement(GradientsType(plan.units(unit)));
    }
    case Buffer::OUTER_GRADIENTS:
      return LargestChange(plan, *FindPlacement(role, unit), rank()).bytes();
    case Buffer::OPTIMIZER_STATE:
      return LargestStateAtRest(plan, *FindPlacement(role, unit), rank()) *
             kBytesOfF32;
    case Buffer::SNAPSHOT_COPY:
      return CopiedElements(plan, *FindPlacement(role, unit), rank()) *
             kBytesOfF32;
    case Buffer::STATE_COPY:
      return StateCopyBytes(plan, role);
    case Buffer::PEER_COPY:
      return StateCopyBytes(
          plan, RoleOf(plan, MirroredBy(plan, FirstRankOf(plan.mesh(), role))));
    default:
      CHECK(false) << "no size known for " << Buffer::Kind_Name(kind);
      return 0;
  }
}

}  // namespace troupe
