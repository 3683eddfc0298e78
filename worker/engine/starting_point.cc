#include "worker/engine/starting_point.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/log.h"
#include "proto/base/resume_words.h"
#include "proto/base/status.h"
#include "proto/plan/mesh.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/checkpoint_folder.h"
#include "storage/disk/roots.h"
#include "worker/engine/start_agreement.h"

namespace troupe {
namespace {

// What rank 0 chose: a checkpoint's directory, empty for none, and what the
// job's user should hear of the choice: what was skipped on the way to it. In
// the store, a line each.
struct Choice {
  std::string path;
  bool newest = false;  // of a folder, so that an older one may do
  std::vector<std::string> skipped;
};

std::string Format(const Choice& choice) {
  std::string text = absl::StrCat(absl::CEscape(choice.path), "\n",
                                  choice.newest ? "newest" : "");
  for (const std::string& skipped : choice.skipped) {
    absl::StrAppend(&text, "\n", absl::CEscape(skipped));
  }
  return text;
}

absl::StatusOr<Choice> ParseChoice(const std::string& text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::CUnescape(line, &lines.emplace_back())) {
      return absl::InternalError("rank 0 is of another version of Troupe");
    }
  }
  if (lines.size() < 2) {
    return absl::InternalError("rank 0 is of another version of Troupe");
  }
  Choice choice = {.path = lines[0], .newest = !lines[1].empty()};
  choice.skipped.assign(lines.begin() + 2, lines.end());
  // From another host, where roots may be others.
  RETURN_IF_ERROR(CheckJobPath("checkpoint.resume", choice.path));
  return choice;
}

// The folder whose newest checkpoint is meant; empty: that very checkpoint is.
std::string FolderOf(const std::string& resume, const JobSpec& job) {
  if (IsResumeWord(resume)) return job.checkpoint().directory();
  return HoldsCheckpoints(resume) ? resume : "";
}

// Whether `auto` finds nothing to go on from. Damaged checkpoints are something.
absl::StatusOr<bool> StartsFresh(const std::string& resume,
                                 const std::string& folder) {
  if (resume != kResumeAuto) return false;
  ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries,
                   ListCheckpoints(folder));
  return entries.empty();
}

// Rank 0's.
absl::StatusOr<Choice> Choose(const std::string& resume, const JobSpec& job,
                              const DamagedCheckpoints& damaged) {
  const std::string folder = FolderOf(resume, job);
  if (folder.empty()) return Choice{.path = resume};
  const std::string field = absl::StrCat("checkpoint.resume ", resume);
  const absl::StatusOr<bool> fresh = StartsFresh(resume, folder);
  if (!fresh.ok()) return Annotate(fresh.status(), field);
  if (*fresh) {
    return Choice{.skipped = {absl::StrCat(field, ": no checkpoint is in ",
                                           folder,
                                           "; training starts at step 1")}};
  }
  absl::StatusOr<NewestCheckpoint> newest =
      FindNewestComplete(folder, CheckDepth::kSizes, damaged);
  if (!newest.ok()) {
    const absl::Status status = Annotate(newest.status(), field);
    if (resume != kResumeAuto || !absl::IsNotFound(status)) return status;
    return absl::NotFoundError(absl::StrCat(
        status.message(),
        "; to start again at step 1, move them away, or leave "
        "checkpoint.resume out and set checkpoint.overwrite: true"));
  }
  return Choice{.path = newest->path,
                .newest = true,
                .skipped = std::move(newest->skipped)};
}

// What becomes of the checkpoints that an earlier run left where this one's go.
absl::Status WarnOfEarlierRun(const StartingPoint& start,
                              const std::string& resume,
                              const std::string& directory,
                              RankListener& listener) {
  ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries,
                   ListCheckpoints(directory));
  if (entries.empty()) return absl::OkStatus();
  if (!GoesOnIn(directory, resume)) {
    return listener.OnWarning(absl::StrCat(
        "checkpoint.overwrite: what an earlier run left in ", directory, ", ",
        entries.back().path,
        " the last, is removed when this run's first checkpoint is there"));
  }
  const int64_t first_step = start.position.step + 1;
  // Of what was skipped on the way to the newest all have been warned.
  if (start.is_newest || entries.back().step < first_step) {
    return absl::OkStatus();
  }
  // The run's own have lower steps at first, so `latest` passes them over.
  return listener.OnWarning(absl::StrCat(
      "checkpoint.directory: ", entries.back().path,
      " is there from an earlier run, and this one starts at step ", first_step,
      ": it replaces those that it comes to, and until it is beyond them "
      "`checkpoint.resume: latest` means the other's; use another directory, "
      "or move what is there away"));
}

// Against the step at which the run ends. With `auto` a job that is done is no
// error: it ends at once, and says why.
absl::Status CheckStep(const StartingPoint& start, const StartOptions& options,
                       RankListener& listener) {
  const int64_t step = start.position.step;
  const bool is_auto = options.resume == kResumeAuto;
  if (step < options.last_step || (step == options.last_step && !is_auto)) {
    return absl::OkStatus();
  }
  if (is_auto) {
    return listener.OnWarning(absl::StrCat(
        "nothing is left to train: checkpoint ", start.resumed_from,
        " is of step ", step, ", and training ends after step ",
        options.last_step, "; to train on, raise training.steps"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "training.stop_after: ", options.last_step, ", but checkpoint ",
      start.resumed_from, " is of step ", step,
      "; ask for a later step, or for 0: all of training.steps"));
}

// One rank on its way to its start.
class Starter {
 public:
  Starter(const StartOptions& options, const StartResources& resources,
          RankState& state, RankListener& listener)
      : options_(options),
        disk_(resources.disk),
        state_(state),
        listener_(listener),
        agreement_({.rank = state.rank(),
                    .ranks = MeshSize(state.plan->mesh()),
                    .name = options.name},
                   resources.store) {}

  absl::StatusOr<StartingPoint> Start() {
    bool begins = false;
    while (!begins) {
      StartingPoint start;
      ASSIGN_OR_RETURN(const Choice choice, AgreeOnChoice());
      start.resumed_from = choice.path;
      start.is_newest = choice.newest;
      ASSIGN_OR_RETURN(const std::string damage, Load(start));
      StartOutcome outcome = {.damage = damage,
                              .step = start.position.step,
                              .data = state_.DataIdentity()};
      if (!start.resumed_from.empty()) {
        outcome.content =
            absl::StrCat(start.resumed_from, ", ", start.position.content);
      }
      ASSIGN_OR_RETURN(begins, agreement_.Begin(outcome));
      if (begins) {
        for (const std::string& skipped : choice.skipped) {
          RETURN_IF_ERROR(listener_.OnWarning(skipped));
        }
        start_ = std::move(start);
      } else {
        LogWarning(absl::StrCat("skipping checkpoint ", start.resumed_from,
                                ": ", agreement_.damage()));
        damaged_[start.resumed_from] = agreement_.damage();
      }
    }
    return std::move(start_);
  }

 private:
  const JobSpec& job() const { return state_.plan->job(); }

  absl::StatusOr<Choice> AgreeOnChoice() {
    Choice mine;
    if (state_.rank() == 0) {
      ASSIGN_OR_RETURN(mine, Choose(options_.resume, job(), damaged_));
    }
    ASSIGN_OR_RETURN(const std::string text, agreement_.Choose(Format(mine)));
    return ParseChoice(text);
  }

  // Sets weights and moments. What is damaged, where the folder may have
  // another.
  absl::StatusOr<std::string> Load(StartingPoint& start) {
    if (start.resumed_from.empty()) {
      if (job().model().hf().empty()) {
        RETURN_IF_ERROR(InitializeFromSeed(state_));
      } else {
        RETURN_IF_ERROR(
            InitializeFromHuggingFace(job().model().hf(), disk_, state_));
      }
      return "";
    }
    absl::StatusOr<TrainingPosition> restored =
        RestoreFromCheckpoint(start.resumed_from, disk_, state_);
    if (restored.ok()) {
      start.position = *std::move(restored);
      return "";
    }
    const absl::Status& status = restored.status();
    if (absl::IsDataLoss(status) && start.is_newest) {
      return std::string(status.message());
    }
    if (absl::IsNotFound(status) && state_.rank() != 0) {
      return Annotate(status,
                      absl::StrCat("rank 0 resumes from ", start.resumed_from,
                                   ", which all workers must see"));
    }
    return status;
  }

  const StartOptions& options_;
  const RankDisk disk_;
  RankState& state_;
  RankListener& listener_;
  StartAgreement agreement_;
  StartingPoint start_;
  DamagedCheckpoints damaged_;  // for some rank
};

}  // namespace

absl::StatusOr<StartingPoint> SetStartingPoint(const StartOptions& options,
                                               const StartResources& resources,
                                               RankState& state,
                                               RankListener& listener) {
  ASSIGN_OR_RETURN(StartingPoint start,
                   Starter(options, resources, state, listener).Start());
  const TrainingPosition& position = start.position;
  if (!position.differences.empty()) {
    RETURN_IF_ERROR(listener.OnWarning(absl::StrCat(
        "checkpoint ", start.resumed_from, " was trained with other settings: ",
        absl::StrJoin(position.differences, "; "))));
  }
  if (position.data_unchecked) {
    RETURN_IF_ERROR(listener.OnWarning(absl::StrCat(
        "checkpoint ", start.resumed_from,
        " was written before it was known whether its tokens hold their "
        "checksum: if the run that wrote it has found them damaged, resume an "
        "older one")));
  }
  RETURN_IF_ERROR(CheckStep(start, options, listener));
  const std::string& directory = state.plan->job().checkpoint().directory();
  if (!directory.empty()) {
    RETURN_IF_ERROR(
        WarnOfEarlierRun(start, options.resume, directory, listener));
  }
  // What was enqueued here, lanes will use.
  RETURN_IF_ERROR(state.device.Synchronize());
  return start;
}

}  // namespace troupe
