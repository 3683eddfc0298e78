#include "worker/engine/checkpoint_saver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"

namespace troupe {

CheckpointSaver::CheckpointSaver(const CheckpointSaverOptions& options,
                                 const RankState& state, const RankDisk& disk,
                                 const Clock& clock, RankListener& listener)
    : options_(options),
      state_(state),
      disk_(disk),
      clock_(clock),
      listener_(listener),
      pause_(options.pauses.first) {}

CheckpointWriter CheckpointSaver::Writer(bool unchecked) {
  return CheckpointWriter({.token = options_.token,
                           .run_id = options_.run_id,
                           .carried = carried_,
                           .folder = options_.folder,
                           .removal = &removal_,
                           .data_unchecked = unchecked},
                          state_, disk_, clock_, listener_);
}

absl::Status CheckpointSaver::Save(Snapshot snapshot, bool last) {
  if (!options_.background) return Write(snapshot, last);
  background_.Start([this, snapshot = std::move(snapshot), last] {
    return Write(snapshot, last);
  });
  return absl::OkStatus();
}

absl::Status CheckpointSaver::Write(const Snapshot& snapshot, bool last) {
  return Annotate(WriteOrRetry(snapshot, last),
                  absl::StrCat("checkpoint of step ", snapshot.step));
}

absl::Status CheckpointSaver::WriteOrRetry(const Snapshot& snapshot,
                                           bool last) {
  due_at_ns_ = 0;
  while (true) {
    const bool unchecked = options_.data_unchecked();
    CheckpointWriter writer = Writer(unchecked);
    ASSIGN_OR_RETURN(const CheckpointEnd end, writer.Write(snapshot));
    if (end.given_up.empty()) {
      if (unchecked && first_unchecked_ == 0) first_unchecked_ = snapshot.step;
      pause_ = options_.pauses.first;
      return last ? RetryOverwritten(writer, snapshot.step) : absl::OkStatus();
    }
    const absl::Duration pause = NextPause();
    LogWarning(absl::StrCat("the checkpoint of step ", snapshot.step,
                            " could not be written, and is tried again in ",
                            absl::FormatDuration(pause), ": ", end.given_up));
    if (!last) {
      writer.Discard(snapshot.step);
      due_at_ns_ = clock_.MonotonicNanos() + absl::ToInt64Nanoseconds(pause);
      return absl::OkStatus();
    }
    if (options_.gives_up.WaitForNotificationWithTimeout(pause)) {
      writer.Discard(snapshot.step);
      return absl::CancelledError(
          absl::StrCat("a rank was asked to stop; ", end.given_up));
    }
  }
}

absl::Status CheckpointSaver::RetryOverwritten(CheckpointWriter& writer,
                                               int64_t step) {
  if (options_.folder == nullptr) return absl::OkStatus();
  while (options_.folder->has_left() && pause_ < options_.pauses.max) {
    if (options_.gives_up.WaitForNotificationWithTimeout(NextPause())) break;
    const absl::Status stays = writer.RetryOverwritten(step);
    if (options_.folder->superseded()) return stays;
    if (!stays.ok()) LogWarning(stays.message());
  }
  return absl::OkStatus();
}

absl::Duration CheckpointSaver::NextPause() {
  return std::exchange(pause_, std::min(2 * pause_, options_.pauses.max));
}

bool CheckpointSaver::TakeDue() {
  int64_t due = due_at_ns_;
  return state_.rank() == 0 && due != 0 && clock_.MonotonicNanos() >= due &&
         due_at_ns_.compare_exchange_strong(due, 0);
}

absl::Status CheckpointSaver::RemoveOld(int64_t step, const std::string& path) {
  return Writer(/*unchecked=*/false).RemoveOld(step, path);
}

}  // namespace troupe
