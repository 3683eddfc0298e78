#include "worker/engine/save_copies.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/copies.h"
#include "proto/plan/find_program.h"
#include "proto/plan/islands.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "storage/checkpoint/checkpoint_folder.h"
#include "worker/engine/carried_files.h"
#include "worker/engine/checkpoint_holder.h"
#include "worker/engine/rank_shard.h"
#include "worker/layers/element_dtype.h"
#include "worker/rank/rank_state.h"
#include "worker/rank/unit_state.h"

namespace troupe {
namespace {

constexpr int64_t kBytes = sizeof(float);

// What rests of a stretch of a unit, as KEEP lays it from `next` on, which then
// is behind it.
UnitFlatBuffers InCopy(const Plan& plan, int unit, const StretchAtRest& at,
                       char*& next) {
  UnitFlatBuffers memory = {.parameters = TierAddress::InHost(next),
                            .holds = at.rests};
  if (at.stretch.frozen) {
    memory.parameters_type = DTypeOfElement(ParametersType(plan.units(unit)));
    next += at.rests.size() *
            static_cast<int64_t>(DTypeBytes(memory.parameters_type));
    return memory;
  }
  next += at.rests.size() * kBytes;
  memory.optimizer_state = TierAddress::InHost(next);
  next += kBytes *
          StateElements(plan.job().optimizer(), plan.units(unit), at.rests);
  return memory;
}

// What the rank's SNAPSHOTs would collect, in the copy.
std::vector<StateTensor> TensorsOf(const Plan& plan, char* copy) {
  const Role& role = plan.roles(0);
  std::vector<StateTensor> tensors;
  for (const Placement& placement : role.placements()) {
    const int unit = placement.unit();
    char* next = copy + CopyOffsetOfUnit(plan, role, unit);
    for (const StretchAtRest& at : AtRest(plan, placement, plan.rank())) {
      const UnitFlatBuffers memory = InCopy(plan, unit, at, next);
      for (int p = 0; p < at.stretch.part_count; ++p) {
        const Range duty =
            DutyOf(plan, placement, at.stretch.part + p, plan.rank());
        if (duty.size() == 0) continue;
        for (StateTensor& tensor : UnitStateTensors(
                 plan.job().optimizer(), plan.units(unit), memory,
                 {.mesh = &plan.mesh(), .rank = plan.rank()}, duty)) {
          absl::optional<std::string> name = SavedName(
              plan, plan.rank(), plan.units(unit).parts(at.stretch.part + p),
              tensor.name);
          if (!name.has_value()) continue;
          tensor.name = *std::move(name);
          tensors.push_back(std::move(tensor));
        }
      }
    }
  }
  return tensors;
}

}  // namespace

CheckpointAttempt CopiesAttempt(const JobSpec& job, const SaveCopies& request) {
  return {.dir = job.checkpoint().directory(),
          .step = request.state().step(),
          .token = absl::StrCat(request.token(), "-copies")};
}

absl::StatusOr<ShardRecord> WriteCopy(const CopyToSave& copy,
                                      const CheckpointAttempt& attempt,
                                      const KeptMemory& kept,
                                      const RankResources& resources,
                                      DiskLog& log) {
  const Plan& plan = copy.plan();
  const int index = kept.fingerprint == plan.fingerprint()
                        ? kept.copies.Find(attempt.step, copy.peer())
                        : -1;
  if (index < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the copy of the state of rank ", plan.rank(),
                     " after step ", attempt.step, " is not in memory"));
  }
  char* const memory = (copy.peer() ? kept.of_peer : kept.own).at(index);
  TierPort port(resources.device);
  return WriteRankShard(
      attempt,
      {.rank = static_cast<int>(plan.rank()),
       .data_unchecked = copy.data_unchecked() || kept.data_unchecked},
      TensorsOf(plan, memory), port, RankDisk{resources.io, log});
}

absl::StatusOr<CheckpointRecord> CommitCopies(const SaveCopies& request,
                                              const Clock& clock) {
  const Plan& plan = request.commits();
  const JobSpec& job = plan.job();
  const KeptState& state = request.state();
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CheckpointFolder> folder,
      CheckpointFolder::Open(FolderOptionsOf(
          job, {.token = request.token(),
                .job_token = JobToken(request.ref(), request.run_id()),
                .resume = request.resume(),
                .ran_before = request.ran_before()})));
  SavedState saved = {.run_id = request.run_id(),
                      .samples_consumed = state.samples_consumed(),
                      .loss_scale = {.scale = state.loss_scale(),
                                     .good_steps = state.good_steps(),
                                     .skipped_steps = state.skipped_steps()},
                      .created = clock.Now()};
  absl::optional<SampleReader> data;
  if (LoadsData(plan.roles(0))) {
    ASSIGN_OR_RETURN(data, OpenData(job));
    saved.tokenizer = data->tokenizer();
    saved.data = data->identity();
  }
  return CommitShards(
      CopiesAttempt(job, request), plan, saved,
      {request.shard_records().begin(), request.shard_records().end()},
      CollectCarriedFiles({.tokens = TokensOf(job, data),
                           .tokenizer = saved.tokenizer,
                           .hf = job.model().hf()}),
      folder.get());
}

}  // namespace troupe
