// Sees a rank's checkpoints through, whatever the disk does: writes them beside
// the rank where there is a copy to write from, and tries again those that
// cannot be written. A disk that is full costs no training:
//
//   * The rank trains on, and after a pause another checkpoint is due. Rank 0
//     says when; the ranks agree on the step (agreed_stop.h).
//   * The last one of a run has no later step to be replaced by. Its state
//     stays in memory, and all ranks write it again after a pause, until it is
//     there or somebody asks the run to stop without it.
//
// Checkpoints of an earlier run that this one overwrites, and that keep their
// names, are tried again by its next checkpoint, and after the last one for
// half a minute: it is there all the same, and the run ends well.
//
// Pauses double from one failure to the next.
//
//   CheckpointSaver saver(options, state, disk, clock, listener);
//   RETURN_IF_ERROR(saver.AwaitFree());  // the copy may be replaced
//   RETURN_IF_ERROR(saver.Save(std::move(snapshot), last));
//   ... trains on, asks status() and TakeDue() ...
//   RETURN_IF_ERROR(saver.AwaitFree());  // at the end
#ifndef TROUPE_WORKER_ENGINE_CHECKPOINT_SAVER_H_
#define TROUPE_WORKER_ENGINE_CHECKPOINT_SAVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "storage/checkpoint/checkpoint_folder.h"
#include "storage/checkpoint/commit.h"
#include "worker/engine/background_writer.h"
#include "worker/engine/checkpoint_writer.h"
#include "worker/engine/rank_listener.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/rank_state.h"

namespace troupe {

// Between a checkpoint that could not be written and the next attempt.
struct SavePauses {
  absl::Duration first = absl::Seconds(1);
  // The scheduler takes a rank of which it hears nothing for a minute for hung.
  absl::Duration max = absl::Seconds(30);
};

struct CheckpointSaverOptions {
  std::string token;                   // checkpoint_writer.h
  std::string run_id;                  // checkpoint_writer.h
  bool background = false;             // snapshots are copies
  CheckpointFolder* folder = nullptr;  // of rank 0
  SavePauses pauses;
  // Whether the checksum of the data is not known to hold yet.
  std::function<bool()> data_unchecked;
  // Notified when the run is to end without its last checkpoint.
  const absl::Notification& gives_up;
};

// One thread, but for what is said otherwise. Borrows all.
class CheckpointSaver {
 public:
  CheckpointSaver(const CheckpointSaverOptions& options, const RankState& state,
                  const RankDisk& disk, const Clock& clock,
                  RankListener& listener);
  // Waits for what is being written and removed.
  ~CheckpointSaver() = default;

  // What rank 0 puts into each checkpoint. Before the first one.
  void SetCarried(std::vector<CarriedFile> carried) {
    carried_ = std::move(carried);
  }

  // Waits until what was to be saved is, or is not to be tried again. The first
  // error of any: Cancelled where the run was asked to end without it.
  absl::Status AwaitFree() { return background_.AwaitIdle(); }
  // The first error so far; does not wait.
  absl::Status status() const { return background_.status(); }

  // Writes it, or begins to. `last`: the run ends after it. Without a copy it
  // waits as AwaitFree does. REQUIRES that the saver is free.
  absl::Status Save(Snapshot snapshot, bool last);

  // Rank 0: whether a checkpoint that could not be written is due again. Says
  // so once for each.
  bool TakeDue();

  // Removes what is obsolete by this checkpoint, which is known to be there.
  absl::Status RemoveOld(int64_t step, const std::string& path);

  // The first step that was saved before it was known that the data holds; 0:
  // there is none. Any thread.
  int64_t first_unchecked() const { return first_unchecked_; }

 private:
  CheckpointWriter Writer(bool unchecked);
  absl::Status Write(const Snapshot& snapshot, bool last);
  absl::Status WriteOrRetry(const Snapshot& snapshot, bool last);
  // After the last one.
  absl::Status RetryOverwritten(CheckpointWriter& writer, int64_t step);
  // The next pause: twice the one before.
  absl::Duration NextPause();

  const CheckpointSaverOptions options_;
  const RankState& state_;
  const RankDisk disk_;
  const Clock& clock_;
  RankListener& listener_;
  std::vector<CarriedFile> carried_;
  absl::Duration pause_;               // before the next attempt
  std::atomic<int64_t> due_at_ns_{0};  // of the clock; 0: nothing is due
  std::atomic<int64_t> first_unchecked_{0};
  BackgroundWriter removal_;     // of rank 0
  BackgroundWriter background_;  // uses all of the above
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_CHECKPOINT_SAVER_H_
