#include "worker/engine/loop_checkpoints.h"

#include <utility>

#include "proto/base/status.h"
#include "worker/engine/carried_files.h"

namespace troupe {

LoopCheckpoints::LoopCheckpoints(const LoopCheckpointsOptions& options,
                                 const RankDisk& disk, const Clock& clock,
                                 RankListener& listener)
    : options_(options), disk_(disk), clock_(clock), listener_(listener) {}

absl::Status LoopCheckpoints::Open(const RankState& state,
                                   std::function<bool()> data_unchecked) {
  if (!options_.any) return absl::OkStatus();
  const JobSpec& job = options_.plan->job();
  ASSIGN_OR_RETURN(folder_, OpenCheckpointFolder(job, options_.holder,
                                                 state.rank(), listener_));
  const CheckpointSaverOptions options = {
      .token = options_.holder.token,
      .run_id = options_.run_id,
      .background = job.checkpoint().background(),
      .folder = folder_.get(),
      .pauses = options_.pauses,
      .data_unchecked = std::move(data_unchecked),
      .gives_up = gives_up_};
  saver_ = std::make_unique<CheckpointSaver>(options, state, disk_, clock_,
                                             listener_);
  return absl::OkStatus();
}

absl::Status LoopCheckpoints::Resume(const StartingPoint& start,
                                     const RankState& state) {
  if (saver_ == nullptr || state.rank() != 0) return absl::OkStatus();
  const JobSpec& job = options_.plan->job();
  saver_->SetCarried(CollectCarriedFiles({.tokens = TokensOf(job, state.data),
                                          .tokenizer = state.tokenizer(),
                                          .hf = job.model().hf(),
                                          .resumed_from = start.resumed_from}));
  return Annotate(RemoveOld(start), "checkpoint.directory");
}

// Copies may be of a later step than the checkpoint is. Where the directory is
// not held yet, the first checkpoint that is written removes the same.
absl::Status LoopCheckpoints::RemoveOld(const StartingPoint& start) {
  if (options_.recovers || !folder_->held().ok() ||
      !ResumesItsOwn(options_.plan->job(), options_.holder)) {
    return absl::OkStatus();
  }
  return saver_->RemoveOld(start.position.step, start.resumed_from);
}

absl::Status LoopCheckpoints::Save(RankState& state, const StepContext& context,
                                   bool last,
                                   const std::function<absl::Status()>& copy) {
  const int64_t begin_ns = clock_.MonotonicNanos();
  // There is one copy: what is in it must be written before it is replaced.
  RETURN_IF_ERROR(saver_->AwaitFree());
  RETURN_IF_ERROR(copy());
  Snapshot snapshot = {
      .step = context.step,
      .samples_consumed = context.samples_before +
                          options_.plan->job().training().global_batch_size(),
      .loss_scale = state.loss_scale.state(),
      .tensors = std::move(state.snapshot)};
  RETURN_IF_ERROR(saver_->Save(std::move(snapshot), last));
  stall_seconds_ = (clock_.MonotonicNanos() - begin_ns) * 1e-9;
  return absl::OkStatus();
}

absl::Status LoopCheckpoints::End() {
  const absl::Status saved =
      saver_ == nullptr ? absl::OkStatus() : saver_->AwaitFree();
  saver_.reset();  // waits for what is being removed
  folder_.reset();
  return saved;
}

}  // namespace troupe
