#include "tests/equivalence/tensor_matrix.h"

#include "absl/strings/str_cat.h"
#include "scheduler/pipelines/pipelines.h"

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

absl::StatusOr<TrainingDifference> TrainBesideOneRank(
    const TensorConfiguration& configuration, ReferenceRuns& references) {
  const JobSpec job = JobOf(configuration);
  return references.Compare({{CutJob(job, configuration.cut), kSteps}}, job);
}

}  // namespace troupe
