#include "scheduler/planner/fit_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "scheduler/planner/fit_recompute.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/tiers/loss_chunks.h"
#include "scheduler/tiers/offload.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

bool RecomputeIsOpen(const MemorySpec& asked) {
  const RecomputeSpec& recompute = asked.recompute();
  if (recompute.has_mode()) return recompute.mode() == kRecomputeAuto;
  return recompute.units().empty() && recompute.selective_units().empty();
}

bool IsOpen(const JobSpec& asked, const std::string& field) {
  const MemorySpec& memory = asked.memory();
  return (field == kRecomputeField && RecomputeIsOpen(memory)) ||
         (field == kLossChunksField && !memory.has_loss_chunk_tokens()) ||
         (field == kZeroField && !asked.parallelism().has_zero()) ||
         (field == "memory.optimizer" && !memory.has_optimizer()) ||
         (field == "memory.parameters" && !memory.has_parameters()) ||
         (field == "memory.gradients" && !memory.has_gradients()) ||
         (field == "memory.activations" && !memory.has_activations());
}

const FieldChange* FindRecompute(const Remedy& remedy) {
  for (const FieldChange& change : remedy.changes) {
    if (change.field == kRecomputeField) return &change;
  }
  return nullptr;
}

// All units make again as much in it; here as few as fit do. No changes where
// that does not fit.
absl::StatusOr<Remedy> AsLittleAgainAsFits(
    Remedy remedy, double seconds,
    const std::vector<WorkerDescription>& workers, const BuildPlan& build) {
  remedy.job.mutable_memory()->mutable_recompute()->set_mode(kRecomputeNone);
  ASSIGN_OR_RETURN(const Plan keeps_all, build(remedy.job));
  if (!CheckMemory(keeps_all, workers).ok()) {
    ASSIGN_OR_RETURN(remedy.job, FitRecompute(keeps_all, workers, build));
  }
  ASSIGN_OR_RETURN(const Plan plan, build(remedy.job));
  if (!CheckMemory(plan, workers).ok()) return Remedy();
  remedy.longer = PredictedStepSeconds(plan, workers) / seconds - 1;
  for (FieldChange& change : remedy.changes) {
    if (change.field == kRecomputeField) change.value = kRecomputeAuto;
  }
  return remedy;
}

}  // namespace

bool LeavesOpen(const MemorySpec& memory) { return memory.has_mode(); }

JobSpec WithNothingChosen(const JobSpec& job) {
  JobSpec result = job;
  MemorySpec& memory = *result.mutable_memory();
  memory.clear_mode();
  if (!MayStayOnDevice(memory)) {
    memory.clear_chunk_megabytes();  // of nothing, so far
    memory.clear_device_bytes();
  }
  if (RecomputeIsOpen(job.memory())) memory.clear_recompute();
  absl::StatusOr<JobSpec> resolved = ResolveJob(result);
  CHECK_OK(resolved.status());
  return *std::move(resolved);
}

absl::StatusOr<Remedy> FitMemory(const JobSpec& asked, const Plan& plan,
                                 const std::vector<WorkerDescription>& workers,
                                 const BuildPlan& build) {
  ASSIGN_OR_RETURN(const Remedies remedies,
                   FindRemedies(plan, workers, build,
                                {.may_change =
                                     [&asked](const std::string& field) {
                                       return IsOpen(asked, field);
                                     },
                                 .changes_max = kMemoryFields,
                                 .goes_on = true,
                                 .chunks = asked.memory().has_chunk_megabytes()
                                               ? ChunksAsked(asked.memory())
                                               : Chunks{.megabytes = "auto"}}));
  if (remedies.fitting.empty()) return remedies.closest;
  Remedy best = remedies.fitting.front();
  const auto again = std::find_if(
      remedies.fitting.begin(), remedies.fitting.end(),
      [](const Remedy& remedy) { return FindRecompute(remedy) != nullptr; });
  if (again == remedies.fitting.end()) return best;
  ASSIGN_OR_RETURN(Remedy less, AsLittleAgainAsFits(
                                    *again, PredictedStepSeconds(plan, workers),
                                    workers, build));
  const bool quicker = !less.changes.empty() && less.longer < best.longer;
  return quicker ? std::move(less) : std::move(best);
}

}  // namespace troupe
