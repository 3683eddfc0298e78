#include "tests/equivalence/tensor_matrix.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "scheduler/pipelines/pipelines.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/state_difference.h"

namespace troupe {
namespace {

constexpr int kSteps = 6;

// How a job is cut into stages.
struct Stages {
  std::string schedule;
  int pipeline;
};
std::vector<Stages> AllStages() {
  std::vector<Stages> all = {{"1f1b", 1}};
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.asynchronous) continue;
    all.push_back({.schedule = std::string(pipeline.name), .pipeline = 2});
  }
  return all;
}

// Without its cut, which is another one's too.
JobSpec JobOf(const TensorConfiguration& configuration) {
  const bool thirds = configuration.cut.tensor == 3;
  JobSpec job = TensorJob({.architecture = configuration.architecture,
                           .tied = configuration.dropout > 0,
                           .dropout = configuration.dropout,
                           .key_value_heads = thirds ? 3 : 2});
  job.mutable_model()->set_num_hidden_layers(4);
  TrainingSpec& training = *job.mutable_training();
  training.set_micro_batch_size(1);
  training.set_steps(kSteps);
  training.set_validate_every(0);  // but for the last one
  return job;
}

}  // namespace

std::string TensorConfiguration::name() const {
  return absl::StrCat(architecture, ", tensor ", cut.tensor,
                      cut.sequence ? ", sequence" : "", ", ",
                      cut.pipeline > 1 ? cut.schedule : "no pipeline",
                      cut.data > 1 ? absl::StrCat(", data ", cut.data) : "",
                      dropout > 0 ? ", dropout" : "");
}

std::vector<TensorConfiguration> TensorMatrix() {
  std::vector<TensorConfiguration> matrix;
  for (const char* const architecture :
       {"gpt2", "gpt_neox", "llama", "mistral", "qwen2", "qwen3"}) {
    for (const int tensor : {2, 3, 4, 8}) {
      for (const bool sequence : {false, true}) {
        for (const auto& [schedule, pipeline] : AllStages()) {
          for (const int data : {1, 2}) {
            for (const double dropout : {0.0, 0.1}) {
              matrix.push_back({.architecture = architecture,
                                .dropout = dropout,
                                .cut = {.tensor = tensor,
                                        .sequence = sequence,
                                        .schedule = schedule,
                                        .pipeline = pipeline,
                                        .data = data}});
            }
          }
        }
      }
    }
  }
  return matrix;
}

bool TrainingDifference::IsRounding() const {
  return losses <= 1e-5 && norms <= 1e-4 && weights <= 1e-4;
}

BesideOneRank::BesideOneRank(std::string directory)
    : directory_(std::move(directory)) {
  std::filesystem::remove_all(directory_);
}

BesideOneRank::~BesideOneRank() { std::filesystem::remove_all(directory_); }

absl::StatusOr<TrainingDifference> BesideOneRank::Train(
    const TensorConfiguration& configuration) {
  const JobSpec job = JobOf(configuration);
  const Reference& reference = OneRank(job);
  JobSpec cut = CutJob(job, configuration.cut);
  const std::string directory = directory_ + "/cut";
  std::filesystem::remove_all(directory);
  cut.mutable_checkpoint()->set_directory(directory);
  const TrainingRun run =
      troupe::Train(cut, {.ranks = configuration.cut.ranks()});
  RETURN_IF_ERROR(run.status());
  if (run.bytes_left > 0) {
    return absl::InternalError(
        absl::StrCat(run.bytes_left, " bytes were not given back"));
  }
  const StepDifference steps = FurthestApart(run, reference.run);
  const StateDifference states =
      CompareStates(CheckpointPath(directory, kSteps), reference.checkpoint);
  return TrainingDifference{
      .losses = steps.losses, .norms = steps.norms, .weights = states.weights};
}

const BesideOneRank::Reference& BesideOneRank::OneRank(const JobSpec& job) {
  const auto [found, is_new] = references_.try_emplace(job.SerializeAsString());
  Reference& reference = found->second;
  if (!is_new) return reference;
  JobSpec saved = job;
  const std::string directory =
      absl::StrCat(directory_, "/whole", references_.size());
  saved.mutable_checkpoint()->set_directory(directory);
  reference.run = troupe::Train(saved, {});
  CHECK_OK(reference.run.status());
  reference.checkpoint = CheckpointPath(directory, kSteps);
  return reference;
}

}  // namespace troupe
