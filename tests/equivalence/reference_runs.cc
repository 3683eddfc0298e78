#include "tests/equivalence/reference_runs.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/precision.h"
#include "proto/plan/ranks_needed.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/state_difference.h"

namespace troupe {
namespace {

TrainingRun TrainAll(const JobSpec& job, const std::string& resume) {
  return Train(job, {.ranks = RanksNeeded(job), .resume = resume});
}

// The reference's steps of a leg, as if it had taken no others.
TrainingRun StepsOf(const TrainingRun& reference, int64_t from, int64_t until) {
  const std::vector<StepRecord>& all = reference.steps.at(0);
  TrainingRun part;
  part.steps.emplace_back(all.begin() + from, all.begin() + until);
  return part;
}

// Both are that far from f32, each on its own side; and of the furthest apart
// of 20 steps, what one pair of runs shows is half of what another does.
constexpr double kSpread = 4;

}  // namespace

bool TrainingDifference::IsRounding(const TrainingDifference& from_f32) const {
  return losses <= std::max(1e-5, kSpread * from_f32.losses) &&
         norms <= std::max(1e-3, kSpread * from_f32.norms) &&
         weights <= std::max(1e-4, kSpread * from_f32.weights);
}

ReferenceRuns::ReferenceRuns(std::string directory)
    : directory_(std::move(directory)) {
  std::filesystem::remove_all(directory_);
}

ReferenceRuns::~ReferenceRuns() { std::filesystem::remove_all(directory_); }

absl::StatusOr<TrainingDifference> ReferenceRuns::Compare(
    const std::vector<Leg>& legs, const JobSpec& reference) {
  const Reference& of = Of(reference);
  const std::string directory = directory_ + "/legs";
  std::filesystem::remove_all(directory);
  TrainingDifference furthest;
  int64_t done = 0;
  for (const Leg& leg : legs) {
    JobSpec job = leg.job;
    job.mutable_checkpoint()->set_directory(directory);
    if (leg.until < job.training().steps()) {
      job.mutable_training()->set_stop_after(leg.until);
    }
    const TrainingRun run = TrainAll(job, done > 0 ? "latest" : "");
    RETURN_IF_ERROR(run.status());
    if (run.bytes_left > 0) {
      return absl::InternalError(
          absl::StrCat(run.bytes_left, " bytes were not given back"));
    }
    const StepDifference steps =
        FurthestApart(run, StepsOf(of.run, done, leg.until));
    furthest.losses = std::max(furthest.losses, steps.losses);
    furthest.norms = std::max(furthest.norms, steps.norms);
    done = leg.until;
  }
  furthest.weights =
      CompareStates(CheckpointPath(directory, done), of.checkpoint).weights;
  return furthest;
}

TrainingDifference ReferenceRuns::FromF32(const JobSpec& reference) {
  if (ComputeType(reference.training()) == F32) return {};
  JobSpec f32 = reference;
  f32.mutable_training()->set_precision("f32");
  const Reference& of = Of(reference);
  const Reference& exact = Of(f32);
  const StepDifference steps = FurthestApart(of.run, exact.run);
  const double weights = CompareStates(of.checkpoint, exact.checkpoint).weights;
  // A run may come near by chance.
  constexpr double kRounding = 1.0 / 2048;  // of fp16
  return {.losses = std::max(steps.losses, kRounding / 4),
          .norms = std::max(steps.norms, kRounding * 4),
          .weights = std::max(weights, kRounding / 2)};
}

const ReferenceRuns::Reference& ReferenceRuns::Of(const JobSpec& job) {
  const auto [found, is_new] = references_.try_emplace(job.SerializeAsString());
  Reference& reference = found->second;
  if (!is_new) return reference;
  JobSpec saved = job;
  const std::string directory =
      absl::StrCat(directory_, "/reference", references_.size());
  saved.mutable_checkpoint()->set_directory(directory);
  reference.run = TrainAll(saved, "");
  CHECK_OK(reference.run.status());
  reference.checkpoint = CheckpointPath(directory, job.training().steps());
  return reference;
}

}  // namespace troupe
