#include "scheduler/planner/weights_by_memory.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/find_program.h"
#include "proto/plan/memory.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/resolve_micro_batches.h"
#include "scheduler/planner/resolve_zero_weights.h"

namespace troupe {
namespace {

// The largest weight: so finely sizes are told apart.
constexpr int kFinest = 16;

bool IsByMemory(const JobSpec& resolved) {
  return resolved.parallelism().zero_split() == kSplitByMemory;
}

// Of what a role stores on the device, the slices.
int64_t SliceBytes(const Role& role) {
  int64_t bytes = 0;
  for (const Buffer& buffer : StepProgram(role)->buffers()) {
    const Slot& slot = role.slots(buffer.slot());
    if (buffer.slice() && slot.tier() == DEVICE) {
      bytes += buffer.bytes() * std::max(1, slot.copies());
    }
  }
  return bytes;
}

// How many times its even slices each replica has room for; empty: not known.
std::vector<double> RoomOfReplicas(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  std::vector<double> room(AxisSize(plan.mesh(), kReplicaAxis),
                           std::numeric_limits<double>::infinity());
  for (int rank = 0; rank < MeshSize(plan.mesh()); ++rank) {
    const absl::optional<int64_t> has = BytesForSlots(plan, workers[rank]);
    const Role& role = RoleOf(plan, rank);
    const int64_t slices = SliceBytes(role);
    if (!has.has_value()) return {};
    if (slices == 0) continue;
    const int64_t rest = BytesIn(role, DEVICE) - slices;
    double& of_replica = room[CoordinateOn(plan.mesh(), kReplicaAxis, rank)];
    of_replica = std::min(of_replica, static_cast<double>(*has - rest) /
                                          static_cast<double>(slices));
  }
  return room;
}

}  // namespace

absl::StatusOr<JobSpec> WithWeightsByMemory(
    const JobSpec& resolved, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  if (!IsByMemory(resolved)) return resolved;
  JobSpec job = resolved;
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  ClearZeroWeights(parallelism);
  if (parallelism.zero() == 0 || ReplicasOf(parallelism) == 1) return job;
  ASSIGN_OR_RETURN(const Plan even, build(job));
  const std::vector<double> room = RoomOfReplicas(even, workers);
  if (room.empty()) return job;
  const double most = *std::max_element(room.begin(), room.end());
  if (!std::isfinite(most) || most <= 0) return job;
  JobSpec weighted = job;
  ParallelismSpec& by_memory = *weighted.mutable_parallelism();
  for (const double of_replica : room) {
    by_memory.add_zero_weights(
        std::max(1, static_cast<int>(std::floor(kFinest * of_replica / most))));
  }
  by_memory.set_zero_split(kSplitGiven);
  // Where weights cannot be so (zero_size), slices stay even.
  if (!ResolveZeroWeights(by_memory).ok()) return job;
  return weighted;
}

BuildPlan ByMemory(const std::vector<WorkerDescription>& workers,
                   BuildPlan build_even, BuildPlan build) {
  return
      [&workers, build_even = std::move(build_even), build = std::move(build)](
          const JobSpec& resolved) -> absl::StatusOr<Plan> {
        ASSIGN_OR_RETURN(JobSpec job,
                         WithWeightsByMemory(resolved, workers, build_even));
        absl::StatusOr<Plan> plan = build(job);
        // Whole matrices may not fit such slices.
        if (!IsByMemory(resolved) || job.parallelism().zero_weights().empty() ||
            !absl::IsInvalidArgument(plan.status())) {
          return plan;
        }
        ClearZeroWeights(*job.mutable_parallelism());
        return build(job);
      };
}

absl::StatusOr<absl::optional<Plan>> FitWeights(
    const std::string& changes, bool zero_is_open, const Plan& plan,
    const std::vector<WorkerDescription>& workers, const BuildPlan& build) {
  const ParallelismSpec& now = plan.job().parallelism();
  const int levels = zero_is_open ? ZeroLevels() : now.zero() + 1;
  const absl::Status lacks = CheckMemory(plan, workers);
  if (now.servers() > 0 || ReplicasOf(now) == 1) return absl::nullopt;
  for (int zero = std::max(1, now.zero()); zero < levels; ++zero) {
    JobSpec job = plan.job();
    ParallelismSpec& parallelism = *job.mutable_parallelism();
    if (zero != now.zero()) {
      parallelism.clear_zero_size();
      parallelism.clear_reshard_after_forward();
      parallelism.set_zero(zero);
    }
    parallelism.clear_zero_weights();
    parallelism.set_zero_split(kSplitByMemory);
    const absl::StatusOr<JobSpec> resolved = ResolveJob(job);
    if (!resolved.ok()) continue;
    ASSIGN_OR_RETURN(Plan fits, build(*resolved));
    if (fits.job().parallelism().zero_weights().empty() ||
        !CheckMemory(fits, workers).ok()) {
      continue;
    }
    fits.mutable_prediction()->set_chosen_memory(absl::StrCat(
        changes, changes.empty() ? "" : ", ",
        zero == now.zero() ? ""
                           : absl::StrCat("parallelism.zero: ", zero, ", "),
        kZeroSplitField, ": ", kSplitByMemory, "; without it ",
        lacks.message()));
    return fits;
  }
  return absl::nullopt;
}

}  // namespace troupe
