// The checkpoints of one run of a rank: holds the directory where they go, has
// the state copied and saved (checkpoint_saver.h), removes what an attempt that
// resumed makes obsolete, and gives up at the end what cannot be written. Of a
// job without checkpoints it does nothing.
//
//   LoopCheckpoints checkpoints(options, disk, clock, listener);
//   RETURN_IF_ERROR(checkpoints.Open(state, data_unchecked));
//   RETURN_IF_ERROR(checkpoints.Resume(start, state));
//   ... in each step: status(), TakeDue() ...
//   RETURN_IF_ERROR(checkpoints.Save(state, context, last, copy));
//   status = checkpoints.End();
#ifndef TROUPE_WORKER_ENGINE_LOOP_CHECKPOINTS_H_
#define TROUPE_WORKER_ENGINE_LOOP_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "proto/base/clock.h"
#include "proto/plan.pb.h"
#include "storage/checkpoint/checkpoint_folder.h"
#include "worker/engine/checkpoint_holder.h"
#include "worker/engine/checkpoint_saver.h"
#include "worker/engine/rank_listener.h"
#include "worker/engine/starting_point.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/rank_state.h"

namespace troupe {

struct LoopCheckpointsOptions {
  std::shared_ptr<const Plan> plan;
  bool any = false;       // the plan has a CHECKPOINT program
  HolderOptions holder;   // of the directory
  bool recovers = false;  // the run begins with copies, not with a checkpoint
  std::string run_id;     // checkpoint_writer.h
  SavePauses pauses;
};

// One thread, but for what is said otherwise. Borrows all but the options.
class LoopCheckpoints {
 public:
  LoopCheckpoints(const LoopCheckpointsOptions& options, const RankDisk& disk,
                  const Clock& clock, RankListener& listener);
  LoopCheckpoints(const LoopCheckpoints&) = delete;
  LoopCheckpoints& operator=(const LoopCheckpoints&) = delete;

  // Before the first step. The state, which is written from, must stay until
  // End. `data_unchecked`: of CheckpointSaverOptions.
  absl::Status Open(const RankState& state,
                    std::function<bool()> data_unchecked);
  // The run goes on from there: what checkpoints carry with them is known. An
  // attempt goes on from a checkpoint of the job's own only when that is
  // stored: what is obsolete by it, if the attempt that wrote it was not there
  // any more to hear that, is removed now.
  absl::Status Resume(const StartingPoint& start, const RankState& state);

  // The first error so far; does not wait.
  absl::Status status() const {
    return saver_ == nullptr ? absl::OkStatus() : saver_->status();
  }
  // Whether one that could not be written is due again (checkpoint_saver.h).
  bool TakeDue() { return saver_ != nullptr && saver_->TakeDue(); }

  // Writes the state as it is after the step, or begins to. `copy` runs the
  // CHECKPOINT program, when what it copies to is free. `last`: the run ends
  // after it. REQUIRES that the job has checkpoints.
  absl::Status Save(RankState& state, const StepContext& context, bool last,
                    const std::function<absl::Status()>& copy);
  // How long the run has stood still for it since this was asked.
  double TakeStallSeconds() { return std::exchange(stall_seconds_, 0); }

  // The first step that was saved before it was known that the data holds; 0:
  // there is none.
  int64_t first_unchecked() const {
    return saver_ == nullptr ? 0 : saver_->first_unchecked();
  }

  // The run ends without a last checkpoint that cannot be written. Any thread,
  // at any time.
  void GiveUp() {
    absl::call_once(give_up_once_, [this] { gives_up_.Notify(); });
  }
  bool gave_up() const { return gives_up_.HasBeenNotified(); }

  // Waits until what was to be saved is, or is given up, and what is obsolete
  // removed; lets the directory go. The first error of any save.
  absl::Status End();

 private:
  absl::Status RemoveOld(const StartingPoint& start);

  const LoopCheckpointsOptions options_;
  const RankDisk disk_;
  const Clock& clock_;
  RankListener& listener_;
  absl::once_flag give_up_once_;
  absl::Notification gives_up_;
  double stall_seconds_ = 0;
  std::unique_ptr<CheckpointFolder> folder_;  // of rank 0; or null
  std::unique_ptr<CheckpointSaver> saver_;    // null: there are none
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_LOOP_CHECKPOINTS_H_
