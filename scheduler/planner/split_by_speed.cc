#include "scheduler/planner/split_by_speed.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/mesh.h"
#include "proto/plan/served.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/resolve_micro_batches.h"
#include "scheduler/planner/start_draft.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/place_seconds.h"

namespace troupe {
namespace {

void SetMicroBatches(const std::vector<int>& counts, JobSpec& job) {
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_micro_batch_split(kSplitGiven);
  parallelism.clear_micro_batches();
  for (const int count : counts) parallelism.add_micro_batches(count);
}

// Of one micro-batch, by replica.
std::vector<double> ReplicaSeconds(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  const CostModel costs(plan, workers);
  std::vector<double> replicas(ReplicasOf(plan.job().parallelism()), 0);
  for (int rank = 0; rank < MeshSize(plan.mesh()); ++rank) {
    if (IsServer(plan, rank)) continue;
    const int place = CoordinateOn(plan.mesh(), "pipeline", rank);
    double seconds = 0;
    for (const Stage& stage : plan.stages()) {
      const auto& holders = stage.pipeline_ranks();
      if (std::count(holders.begin(), holders.end(), place) == 0) continue;
      for (int u = stage.unit(); u < stage.unit() + stage.unit_count(); ++u) {
        seconds += costs.UnitSeconds(rank, u) / holders.size();
      }
    }
    double& replica = replicas[CoordinateOn(plan.mesh(), kReplicaAxis, rank)];
    replica = std::max(replica, seconds);
  }
  return replicas;
}

}  // namespace

absl::StatusOr<ReplicaBatch> ReplicaBatchOf(
    const ParallelismSpec& parallelism) {
  ASSIGN_OR_RETURN(const Pipeline schedule,
                   FindPipeline(parallelism.pipeline_schedule()));
  PipelineShape shape = {.ranks = parallelism.pipeline(),
                         .micro_batches = 1,
                         .virtual_stages = parallelism.virtual_stages()};
  ReplicaBatch batch;
  batch.each = schedule.order(shape).ok() ? 1 : shape.ranks;
  const int enough = 2 * shape.ranks;
  shape.micro_batches = enough;
  ASSIGN_OR_RETURN(const ComputeOrder all, schedule.order(shape));
  for (batch.least = batch.each; batch.least < enough;
       batch.least += batch.each) {
    shape.micro_batches = batch.least;
    ASSIGN_OR_RETURN(const ComputeOrder order, schedule.order(shape));
    if (StageHolders(order, shape.stages()) ==
        StageHolders(all, shape.stages())) {
      break;
    }
  }
  return batch;
}

absl::Status CheckSplit(const JobSpec& resolved, const ReplicaBatch& batch) {
  const int replicas = ReplicasOf(resolved.parallelism());
  const int total = MicroBatchesOfStep(resolved);
  if (total % batch.each == 0 && total >= batch.least * replicas) {
    return absl::OkStatus();
  }
  return FieldError(
      "training.global_batch_size",
      absl::StrCat(resolved.training().global_batch_size(), " are ", total,
                   " micro-batches a step, and ",
                   resolved.parallelism().pipeline_schedule(),
                   " takes at least ", batch.least, " on each of ", replicas,
                   " replicas, and ", batch.each,
                   " at a time; use another size or schedule"));
}

std::vector<int> SplitBySpeed(const std::vector<double>& seconds, int total,
                              const ReplicaBatch& batch) {
  const int each = batch.each;
  std::vector<int> counts(seconds.size(), batch.least);
  // When each would be done with more, and which it is: the first to be so is
  // at the top.
  using Done = std::pair<double, int>;
  std::priority_queue<Done, std::vector<Done>, std::greater<>> done;
  for (size_t d = 0; d < seconds.size(); ++d) {
    done.emplace((counts[d] + each) * seconds[d], static_cast<int>(d));
  }
  int left = total - batch.least * static_cast<int>(seconds.size());
  for (; left > 0; left -= each) {
    const int d = done.top().second;
    done.pop();
    counts[d] += each;
    done.emplace((counts[d] + each) * seconds[d], d);
  }
  return counts;
}

absl::StatusOr<JobSpec> WithMicroBatchesBySpeed(
    const JobSpec& resolved, const std::vector<WorkerDescription>& workers) {
  if (resolved.parallelism().micro_batch_split() != kSplitBySpeed) {
    return resolved;
  }
  const int replicas = ReplicasOf(resolved.parallelism());
  const int total = MicroBatchesOfStep(resolved);
  ASSIGN_OR_RETURN(const ReplicaBatch batch,
                   ReplicaBatchOf(resolved.parallelism()));
  RETURN_IF_ERROR(CheckSplit(resolved, batch));
  JobSpec job = resolved;
  // For the stages, which do not depend on it.
  SetMicroBatches(SplitBySpeed(std::vector<double>(replicas, 1), total, batch),
                  job);
  ASSIGN_OR_RETURN(const Draft draft, StartDraft(job, workers));
  const std::vector<double> seconds = ReplicaSeconds(draft.plan, workers);
  const auto [least, most] =
      std::minmax_element(seconds.begin(), seconds.end());
  const bool even = *most <= (1 + kEqualSpeeds) * *least;
  if (even && total % (batch.each * replicas) == 0) {
    job.mutable_parallelism()->clear_micro_batches();
    job.mutable_parallelism()->set_micro_batch_split(kSplitEven);
    return job;
  }
  SetMicroBatches(
      SplitBySpeed(even ? std::vector<double>(replicas, 1) : seconds, total,
                   batch),
      job);
  return job;
}

}  // namespace troupe
