#include "clients/cli/load_job.h"

#include <string>

#include "clients/cli/job_epochs.h"
#include "clients/hugging_face/expand_adapter.h"
#include "clients/hugging_face/expand_model.h"
#include "proto/base/resume_words.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

HuggingFaceWeightsUse UseOfWeights(JobUse use, const JobSpec& job) {
  // Rank 0 finds out whether there is a checkpoint. Where there is none, the
  // workers check the weights.
  const std::string& resume = job.checkpoint().resume();
  if (resume == kResumeAuto) return HuggingFaceWeightsUse::kIfThere;
  if (!resume.empty()) return HuggingFaceWeightsUse::kUnused;
  return use == JobUse::kPlan ? HuggingFaceWeightsUse::kIfThere
                              : HuggingFaceWeightsUse::kTrained;
}

}  // namespace

absl::StatusOr<JobFile> LoadJob(JobUse use, const JobFileOptions& options) {
  ASSIGN_OR_RETURN(JobFile job, LoadJobFile(options));
  if (!job.spec.has_model()) return job;
  const absl::Status expanded = ExpandHuggingFaceModel(
      UseOfWeights(use, job.spec), *job.spec.mutable_model());
  if (!expanded.ok()) return job.Locate(expanded);
  if (job.spec.has_training()) {
    const absl::Status adapted = ExpandAdapter(*job.spec.mutable_training());
    if (!adapted.ok()) return job.Locate(adapted);
  }
  const absl::Status with_steps = ExpandEpochs(job.spec);
  if (!with_steps.ok()) return job.Locate(with_steps);
  const absl::Status counted = CountEvaluationSteps(job.spec);
  if (!counted.ok()) return job.Locate(counted);
  return job;
}

}  // namespace troupe
