#include "worker/engine/starting_point.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/checkpoint/checkpoint_dir.h"

namespace troupe {
namespace {

absl::StatusOr<std::string> CheckpointToResume(const std::string& resume,
                                               const JobSpec& job,
                                               RankListener& listener) {
  if (resume != "latest") return resume;
  const absl::StatusOr<NewestCheckpoint> newest =
      FindNewestComplete(job.checkpoint().directory(), CheckDepth::kChecksums);
  if (!newest.ok()) {
    return Annotate(newest.status(), "checkpoint.resume latest");
  }
  for (const std::string& skipped : newest->skipped) {
    RETURN_IF_ERROR(listener.OnWarning(skipped));
  }
  return newest->path;
}

// The run's own checkpoints have lower steps, so `latest` passes them over.
absl::Status WarnOfLaterCheckpoints(const std::string& directory,
                                    int64_t first_step,
                                    RankListener& listener) {
  ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries,
                   ListCheckpoints(directory));
  if (entries.empty() || entries.back().step < first_step) {
    return absl::OkStatus();
  }
  return listener.OnWarning(absl::StrCat(
      "checkpoint.directory: ", entries.back().path,
      " is there from an earlier run, and this one starts at step ", first_step,
      ": until it is beyond that, `checkpoint.resume: latest` means the other; "
      "use another directory, or move what is there away"));
}

}  // namespace

absl::StatusOr<StartingPoint> SetStartingPoint(const StartOptions& options,
                                               RankState& state,
                                               RankListener& listener) {
  const JobSpec& job = state.plan->job();
  StartingPoint start;
  if (!options.resume.empty()) {
    ASSIGN_OR_RETURN(start.resumed_from,
                     CheckpointToResume(options.resume, job, listener));
    ASSIGN_OR_RETURN(start.position,
                     RestoreFromCheckpoint(start.resumed_from, state));
    if (!start.position.differences.empty()) {
      RETURN_IF_ERROR(listener.OnWarning(
          absl::StrCat("checkpoint ", start.resumed_from,
                       " was trained with other settings: ",
                       absl::StrJoin(start.position.differences, "; "))));
    }
    if (start.position.step > options.last_step) {
      return absl::InvalidArgumentError(absl::StrCat(
          "training.stop_after: ", options.last_step, ", but checkpoint ",
          start.resumed_from, " is of step ", start.position.step,
          "; ask for a later step, or for 0: all of training.steps"));
    }
  } else if (!job.model().hf().empty()) {
    RETURN_IF_ERROR(InitializeFromHuggingFace(job.model().hf(), state));
  } else {
    InitializeFromSeed(state);
  }
  // Of what it skipped, `latest` has warned.
  const std::string& directory = job.checkpoint().directory();
  if (!directory.empty() && options.resume != "latest") {
    RETURN_IF_ERROR(
        WarnOfLaterCheckpoints(directory, start.position.step + 1, listener));
  }
  // What was enqueued here, lanes will use.
  RETURN_IF_ERROR(state.device.Synchronize());
  return start;
}

}  // namespace troupe
