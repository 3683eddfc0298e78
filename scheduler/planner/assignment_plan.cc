// What of a plan a rank gets, and what tells plans apart.
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "proto/base/must_not_wait.h"
#include "proto/plan/roles.h"
#include "scheduler/planner/planner.h"

namespace troupe {

Plan AssignmentPlan(const Plan& plan, int rank) {
  CheckMayWait("a rank's part of a plan is made");
  Plan assignment;
  *assignment.mutable_job() = plan.job();
  *assignment.mutable_mesh() = plan.mesh();
  *assignment.mutable_lanes() = plan.lanes();
  *assignment.mutable_sums() = plan.sums();
  *assignment.mutable_groups() = plan.groups();
  *assignment.mutable_units() = plan.units();
  *assignment.mutable_tables() = plan.tables();
  *assignment.mutable_batch() = plan.batch();
  if (plan.has_decoding()) *assignment.mutable_decoding() = plan.decoding();
  *assignment.add_roles() = RoleOf(plan, rank);
  assignment.set_rank(rank);
  // Field by field: copies of all ranks' for all ranks would be many.
  const Prediction& prediction = plan.prediction();
  Prediction& part = *assignment.mutable_prediction();
  part.set_step_seconds(prediction.step_seconds());
  part.set_tokens_per_second(prediction.tokens_per_second());
  part.set_model_flops_utilization(prediction.model_flops_utilization());
  part.set_limited_by(prediction.limited_by());
  part.set_peak_flops_per_second(prediction.peak_flops_per_second());
  part.set_datasheet_flops_per_second(prediction.datasheet_flops_per_second());
  part.set_bubble_of_total(prediction.bubble_of_total());
  part.set_bubble_of_ideal(prediction.bubble_of_ideal());
  part.set_keep_seconds(prediction.keep_seconds());
  part.set_keep_every(prediction.keep_every());
  *part.mutable_links() = prediction.links();
  if (rank < prediction.ranks_size()) {  // by rank
    *part.add_ranks() = prediction.ranks(rank);
  }
  assignment.set_fingerprint(plan.fingerprint());
  *assignment.mutable_derived() = plan.derived();
  *assignment.mutable_stages() = plan.stages();
  return assignment;
}

std::string PlanFingerprint(const Plan& plan) {
  Plan bare = plan;
  bare.clear_prediction();
  bare.clear_fingerprint();
  for (Group& group : *bare.mutable_groups()) {
    group.clear_carriers();
    group.clear_why_flat();
  }
  // No message of a plan has a map, so equal plans serialise to equal bytes.
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  for (const char byte : bare.SerializeAsString()) {
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  return absl::StrFormat("%016x", hash);
}

}  // namespace troupe
