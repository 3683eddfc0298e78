// Where a rank's weights and moments come from before its first step: the job's
// seed, a Hugging Face directory, or a checkpoint that any plan may have
// written. Where a unit has several versions of its weights, all of them begin
// as these. A rank sets what it holds, wherever that rests, a little of it in
// memory at a time.
#ifndef TROUPE_WORKER_RANK_INITIAL_STATE_H_
#define TROUPE_WORKER_RANK_INITIAL_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/rank_state.h"

namespace troupe {

// How far training had come.
struct TrainingPosition {
  int64_t step = 0;              // complete steps
  int64_t samples_consumed = 0;  // the data position
  // In what the job that had come there differs (proto/plan/job_differences.h).
  std::vector<std::string> differences;
  bool data_unchecked = false;  // as its manifest says
  // Of the checkpoint's manifest: "manifest 1f3a9c02".
  std::string content;
};

// Draws the initial weights; moments and gradients zero. Errors are those of
// the nvme tier's disk, here and below.
absl::Status InitializeFromSeed(RankState& state);

// Reads the weights of a Hugging Face directory; moments and gradients zero.
// Checks first that the directory holds the plan's model and nothing else: the
// client may have seen another directory, or none. Rank 0 also compares tied
// tables. Errors begin with "model.hf" (storage/checkpoint/check_hugging_face.h
// says which).
absl::Status InitializeFromHuggingFace(const std::string& directory,
                                       const RankDisk& disk, RankState& state);

// Reads weights and moments from the checkpoint's directory; gradients zero. A
// job that evaluates begins at step 1 with its weights, whatever it was trained
// on. An
// imported model (step 0) has no moments: they are zero. Reads what this rank
// holds, once, and checks it on the way.
// NotFound: there is no manifest. DataLoss: the checkpoint is torn or damaged
// where it was read. InvalidArgument: it is of another model or optimizer, lies
// past the last step, or was trained on other tokens than the job has (unless
// data.changed says so). Other errors are the disk's.
absl::StatusOr<TrainingPosition> RestoreFromCheckpoint(const std::string& path,
                                                       const RankDisk& disk,
                                                       RankState& state);

// Takes weights and moments from a copy of this rank's state, as KEEP makes it;
// gradients zero.
absl::Status RestoreFromCopy(const char* copy, RankState& state);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_INITIAL_STATE_H_
