#include "clients/verify/verify_jobs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/plan/islands.h"
#include "proto/plan/model.h"

namespace troupe {
namespace {

JobSpec CutShort(const JobSpec& job, const VerifyOptions& options,
                 const char* name) {
  JobSpec cut = job;
  cut.set_name(absl::StrCat("verify ", name));
  TrainingSpec& training = *cut.mutable_training();
  int64_t steps = options.steps;
  if (training.steps() > 0) steps = std::min(steps, training.steps());
  training.set_stop_after(steps);
  if (cut.has_lr_scheduler()) cut.mutable_lr_scheduler()->clear_warmup_steps();
  training.clear_validate_every();
  training.clear_validation_sequences();
  cut.mutable_metrics()->set_directory("");  // the job's own files stay
  cut.mutable_metrics()->clear_tensorboard();
  CheckpointSpec& checkpoint = *cut.mutable_checkpoint();
  checkpoint.set_directory(absl::StrCat(options.directory, "/", name));
  // N - 1 divides no other step up to N but itself, save where it is 1.
  checkpoint.set_every(std::max<int64_t>(1, steps - 1));
  checkpoint.set_keep(2);
  checkpoint.set_overwrite(true);  // of an earlier verification
  checkpoint.set_background(false);
  checkpoint.clear_resume();
  return cut;
}

}  // namespace

absl::Status CheckVerifiable(const JobSpec& job) {
  if (job.evaluate()) {
    return absl::InvalidArgumentError(
        "evaluate: true trains nothing that could be verified; leave it out");
  }
  if (IsSynthetic(job.model())) {
    return absl::InvalidArgumentError(
        "model.architecture: a synthetic model computes nothing that could be "
        "verified");
  }
  return absl::OkStatus();
}

absl::Status CheckTrainsAsOneRank(const Plan& plan) {
  if (HasIslands(plan)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parallelism.islands: ", plan.job().parallelism().islands(),
        " islands train by themselves between exchanges, and so "
        "another model than one rank; verify takes jobs without "
        "islands"));
  }
  if (!plan.derived().delays_gradients()) return absl::OkStatus();
  if (plan.derived().takes_turns()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "servers.mode: ", plan.job().servers().mode(),
        " trains with delayed gradients, and so another model than one rank; "
        "verify takes sync"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "parallelism.pipeline_schedule: ",
      plan.job().parallelism().pipeline_schedule(),
      " trains with delayed gradients, and so another model than one rank; "
      "verify takes synchronous schedules"));
}

VerifyJobs MakeVerifyJobs(const JobSpec& job, const VerifyOptions& options) {
  VerifyJobs jobs = {.run = CutShort(job, options, "plan"),
                     .reference = CutShort(job, options, "single-rank")};
  jobs.reference.clear_parallelism();
  jobs.reference.clear_servers();
  jobs.reference.clear_islands();
  return jobs;
}

}  // namespace troupe
