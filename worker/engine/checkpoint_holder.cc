#include "worker/engine/checkpoint_holder.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/disk/file_lock.h"
#include "storage/disk/storage_error.h"

namespace troupe {

std::string AttemptToken(const RankRef& ref, const std::string& run_id) {
  return absl::StrCat(JobToken(ref, run_id), ref.attempt());
}

std::string JobToken(const RankRef& ref, const std::string& run_id) {
  return absl::StrCat("job-", ref.job(), "-", run_id, "-");
}

std::string HolderLine(const JobSpec& job, const HolderOptions& options) {
  return absl::StrCat("job ", job.name(), " (", options.token, "), ",
                      ThisProcessName());
}

std::string SupersededLine(const JobSpec& job, const HolderOptions& options) {
  if (!options.ran_before) return "";
  return absl::StrCat("job ", job.name(), " (", options.job_token);
}

// Until there is one, all attempts resume what the job says.
bool ResumesItsOwn(const JobSpec& job, const HolderOptions& options) {
  return options.ran_before && !options.resume.empty() &&
         options.resume != job.checkpoint().resume();
}

CheckpointFolderOptions FolderOptionsOf(const JobSpec& job,
                                        const HolderOptions& options) {
  const CheckpointSpec& checkpoint = job.checkpoint();
  // What another attempt began to overwrite is not overwritten before there is
  // a checkpoint of the job's own, from which it would go on.
  const bool anew = !options.ran_before || checkpoint.overwrite();
  const bool started_anew =
      ResumesItsOwn(job, options) &&
      !GoesOnIn(checkpoint.directory(), checkpoint.resume());
  return {
      .directory = checkpoint.directory(),
      .holder = HolderLine(job, options),
      .starts_anew = anew && !GoesOnIn(checkpoint.directory(), options.resume),
      .overwrite = checkpoint.overwrite(),
      .goes_on_from = started_anew ? options.resume : "",
      .supersedes = SupersededLine(job, options)};
}

absl::StatusOr<std::unique_ptr<CheckpointFolder>> OpenCheckpointFolder(
    const JobSpec& job, const HolderOptions& options, int rank,
    RankListener& listener) {
  constexpr char kField[] = "checkpoint.directory";
  std::unique_ptr<CheckpointFolder> folder;
  absl::Status held;
  if (rank == 0) {
    CheckpointFolderOptions of_job = FolderOptionsOf(job, options);
    of_job.outlasts_full_disk = options.ran_before;
    absl::StatusOr<std::unique_ptr<CheckpointFolder>> opened =
        CheckpointFolder::Open(of_job);
    if (!opened.ok()) return Annotate(opened.status(), kField);
    folder = *std::move(opened);
    held = folder->held();
  } else {
    held = PrepareCheckpointDirectory(job.checkpoint().directory());
  }
  if (held.ok()) return folder;
  if (!options.ran_before || !IsNoRoom(held)) return Annotate(held, kField);
  RETURN_IF_ERROR(listener.OnWarning(absl::StrCat(
      "goes on without checkpoints until there is room for them: ", kField,
      ": ", held.message())));
  return folder;
}

}  // namespace troupe
