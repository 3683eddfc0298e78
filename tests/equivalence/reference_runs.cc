#include "tests/equivalence/reference_runs.h"

#include <algorithm>
#include <cmath>
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

// Of all steps, relative to the norm there, or to the mean of the reference's
// where that is larger: late in a training, and without clipping, norms are
// what is left of larger ones, and say nothing of what rounding did to those.
double NormsApart(const TrainingRun& run, const TrainingRun& of, double mean) {
  double furthest = 0;
  for (const std::vector<StepRecord>& steps : run.steps) {
    for (size_t s = 0; s < steps.size(); ++s) {
      const double want = of.steps[0][s].grad_norm();
      furthest = std::max(furthest, std::abs(steps[s].grad_norm() - want) /
                                        std::max(want, mean));
    }
  }
  return furthest;
}

double MeanNorm(const TrainingRun& run) {
  double sum = 0;
  for (const StepRecord& step : run.steps.at(0)) sum += step.grad_norm();
  return sum / static_cast<double>(run.steps[0].size());
}

// Both are that far from f32, each on its own side; and of the furthest apart
// of 20 steps, what one pair of runs shows is half of what another does. Norms
// spread further, where steps are large enough to go to and fro.
constexpr double kSpread = 4;
constexpr double kSpreadOfNorms = 8;

// What f32 rounds differently where sums are taken in another order. Of norms
// twice what one rank shows beside itself: a Qwen3 of these sizes that is cut
// nowhere, with micro-batches of two sequences and of one, is 1.8e-4 apart.
constexpr double kLosses = 1e-5;
constexpr double kNorms = 4e-4;
constexpr double kWeights = 1e-4;

}  // namespace

bool TrainingDifference::IsRounding(const TrainingDifference& from_f32) const {
  return losses <= std::max(kLosses, kSpread * from_f32.losses) &&
         norms <= std::max(kNorms, kSpreadOfNorms * from_f32.norms) &&
         weights <= std::max(kWeights, kSpread * from_f32.weights);
}

absl::StatusOr<TrainingDifference> ReferenceRuns::Compare(
    const std::vector<Leg>& legs, const JobSpec& reference) {
  const Reference& of = Of(reference);
  const std::string directory = directory_.File("legs");
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
    const TrainingRun wanted = StepsOf(of.run, done, leg.until);
    furthest.losses =
        std::max(furthest.losses, FurthestApart(run, wanted).losses);
    furthest.norms =
        std::max(furthest.norms, NormsApart(run, wanted, MeanNorm(of.run)));
    done = leg.until;
  }
  furthest.weights =
      CompareStates(CheckpointPath(directory, done), of.checkpoint).weights;
  return furthest;
}

TrainingDifference ReferenceRuns::FromF32(const JobSpec& reference) {
  if (ComputeType(reference.training()) == F32) return {};
  TrainingDifference furthest = OneFromF32(reference);
  // A run may come near by chance: a Qwen3 in bf16 of these sizes is 8e-4 to
  // 1.3e-2 from f32, by its seed. So the nearer of two others counts, too.
  JobSpec other = reference;
  other.mutable_training()->set_seed(reference.training().seed() + 1);
  const TrainingDifference a = OneFromF32(other);
  other.mutable_training()->set_seed(reference.training().seed() + 2);
  const TrainingDifference b = OneFromF32(other);
  furthest.losses = std::max(furthest.losses, std::min(a.losses, b.losses));
  furthest.norms = std::max(furthest.norms, std::min(a.norms, b.norms));
  furthest.weights = std::max(furthest.weights, std::min(a.weights, b.weights));
  // For bf16, which rounds eight times as far, this is little: what is measured
  // decides.
  constexpr double kRounding = 1.0 / 2048;  // of fp16
  return {.losses = std::max(furthest.losses, kRounding / 4),
          .norms = std::max(furthest.norms, kRounding * 4),
          .weights = std::max(furthest.weights, kRounding / 2)};
}

TrainingDifference ReferenceRuns::OneFromF32(const JobSpec& reference) {
  JobSpec f32 = reference;
  f32.mutable_training()->set_precision("f32");
  f32.mutable_training()->clear_loss_scale();
  const Reference& of = Of(reference);
  const Reference& exact = Of(f32);
  return {.losses = FurthestApart(of.run, exact.run).losses,
          .norms = NormsApart(of.run, exact.run, MeanNorm(exact.run)),
          .weights = CompareStates(of.checkpoint, exact.checkpoint).weights};
}

const ReferenceRuns::Reference& ReferenceRuns::Of(const JobSpec& job) {
  const auto [found, is_new] = references_.try_emplace(job.SerializeAsString());
  Reference& reference = found->second;
  if (!is_new) return reference;
  JobSpec saved = job;
  const std::string directory =
      directory_.File(absl::StrCat("reference", references_.size()));
  saved.mutable_checkpoint()->set_directory(directory);
  reference.run = TrainAll(saved, "");
  CHECK_OK(reference.run.status());
  reference.checkpoint = CheckpointPath(directory, job.training().steps());
  return reference;
}

}  // namespace troupe
