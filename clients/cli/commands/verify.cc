#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/load_job.h"
#include "clients/cli/root_flags.h"
#include "clients/cli/view/format.h"
#include "clients/verify/compare.h"
#include "clients/verify/judge.h"
#include "clients/verify/verify_jobs.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

constexpr size_t kTensorsShown = 10;

// One of the two runs, once it has ended.
struct Ended {
  std::vector<StepRecord> steps;
  RunCheckpoints checkpoints;
  OptimizerSpec optimizer;
};

std::string Short(double distance) { return absl::StrFormat("%.1e", distance); }

// "-" where it did not report the step.
std::string LossOf(const Ended& ended, int64_t step) {
  for (const StepRecord& record : ended.steps) {
    if (record.step() == step) return NumberText(record.loss(), 6);
  }
  return "-";
}

// The loss scale of fp16 with which its last step was done.
std::string LastScale(const Ended& ended) {
  return absl::StrFormat("%g", ended.steps.back().loss_scale());
}

class Verify final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("FILE", file_, "The job file (YAML)");
    flags.Integer("--steps", steps_, {1, 10'000},
                  {.value = "N", .text = "First steps of the job to run [3]"});
    flags.Texts("--set", overrides_,
                {.value = "PATH=VALUE",
                 .text = "Set a field, as in parallelism.data=2; repeatable"});
    flags.Text("--work", work_,
               {.value = "DIR",
                .text = "Where both runs save; workers and this command must "
                        "see it, below a root of theirs as NAME:path [a "
                        "folder in the temporary one]"});
    roots_.Declare(flags);
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    Interrupt interrupt;
    ASSIGN_OR_RETURN(const auto roots, roots_.Install());
    ASSIGN_OR_RETURN(
        const JobFile job,
        LoadJob(JobUse::kRun, {.path = file_, .overrides = overrides_}));
    RETURN_IF_ERROR(job.Locate(CheckVerifiable(job.spec)));
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    RETURN_IF_ERROR(CheckReadableHere("--work", work_));
    const std::string work =
        absl::StrCat(WorkFolder(), "/troupe-verify-", getpid());
    const VerifyJobs jobs =
        MakeVerifyJobs(job.spec, {.steps = steps_, .directory = work});
    RETURN_IF_ERROR(job.Locate(CheckPlan(*client, jobs.run)));
    const absl::Status status = Compare(*client, job, jobs, interrupt, console);
    RemoveTree(work).IgnoreError();
    return status;
  }

 private:
  std::string WorkFolder() const {
    if (!RootName(work_).empty()) return work_;
    std::error_code error;
    return work_.empty() ? std::filesystem::temp_directory_path(error).string()
                         // not the workers' current one
                         : std::filesystem::absolute(work_, error).string();
  }

  // A job for which there are too few workers now is planned when it starts,
  // and its plan looked at then.
  static absl::Status CheckPlan(Client& client, const JobSpec& job) {
    PlanJobRequest request;
    *request.mutable_job() = job;
    const absl::StatusOr<PlanJobResponse> planned = client.PlanJob(request);
    if (absl::IsFailedPrecondition(planned.status())) return absl::OkStatus();
    RETURN_IF_ERROR(planned.status());
    return CheckTrainsAsOneRank(planned->plan());
  }

  absl::Status Compare(Client& client, const JobFile& job,
                       const VerifyJobs& jobs, Interrupt& interrupt,
                       Console& console) {
    std::vector<int64_t> ids;
    for (const JobSpec* spec : {&jobs.run, &jobs.reference}) {
      const absl::StatusOr<SubmitJobResponse> accepted = client.Submit(
          *spec, [&] { return !interrupt.Arrived(); }, "verify");
      if (!accepted.ok()) {
        CancelAll(client, ids);
        return job.Locate(accepted.status());
      }
      ids.push_back(accepted->id());
      console.out << "job " << ids.back() << " (" << spec->name()
                  << ") accepted" << std::endl;
    }
    std::vector<Ended> ended;
    for (const int64_t id : ids) {
      absl::StatusOr<Ended> run =
          Await(client, id, jobs.run.training().stop_after(), interrupt);
      if (!run.ok()) {
        CancelAll(client, ids);
        return run.status();
      }
      ended.push_back(*std::move(run));
    }
    ASSIGN_OR_RETURN(const std::vector<TensorDistance> distances,
                     CompareCheckpoints({.run = ended[0].checkpoints,
                                         .reference = ended[1].checkpoints,
                                         .optimizer = ended[0].optimizer}));
    return Tell(jobs.run, ended, distances, console);
  }

  // Ends the runs that still go on; they would be of no use.
  static void CancelAll(Client& client, const std::vector<int64_t>& ids) {
    for (const int64_t id : ids) client.Cancel(id).status().IgnoreError();
  }

  // The run of `steps` steps, once it has ended.
  static absl::StatusOr<Ended> Await(Client& client, int64_t id, int64_t steps,
                                     Interrupt& interrupt) {
    RETURN_IF_ERROR(client.Watch(
        {.id = id}, [](const WatchJobResponse&) {},
        [&] { return !interrupt.Arrived(); }));
    ASSIGN_OR_RETURN(const JobDescription job, client.Describe(id));
    if (job.status().state() != SUCCEEDED) {
      return absl::FailedPreconditionError(absl::StrCat(
          "job ", id, " (", job.status().name(), ") is ",
          JobState_Name(job.status().state()), ": ", job.status().reason()));
    }
    Ended ended;
    ended.steps = {job.steps().begin(), job.steps().end()};
    for (const CheckpointRecord& checkpoint : job.status().checkpoints()) {
      if (checkpoint.step() == steps - 1) {
        ended.checkpoints.before = checkpoint.path();
      } else if (checkpoint.step() == steps) {
        ended.checkpoints.after = checkpoint.path();
      }
    }
    if (ended.checkpoints.after.empty() ||
        (steps > 1 && ended.checkpoints.before.empty())) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", id, " (", job.status().name(),
                       ") has not saved its last two steps, ", steps - 1,
                       " and ", steps, "; troupe logs ", id, " says more"));
    }
    RETURN_IF_ERROR(CheckTrainsAsOneRank(job.plan()));
    ended.optimizer = job.plan().job().optimizer();
    return ended;
  }

  absl::Status Tell(const JobSpec& job, const std::vector<Ended>& ended,
                    const std::vector<TensorDistance>& distances,
                    Console& console) {
    const Judgement judgement =
        Judge({.steps = job.training().stop_after(),
               .run = ended[0].steps,
               .reference = ended[1].steps,
               .tensors = distances,
               .tolerance = ToleranceOf(job.training().precision())});
    Table steps({"step>", "loss>", "one rank>", "apart>", "gradients apart>"});
    for (const StepDistance& distance : judgement.steps) {
      steps.Add({absl::StrCat(distance.step), LossOf(ended[0], distance.step),
                 LossOf(ended[1], distance.step), Short(distance.loss),
                 distance.skipped ? "skipped" : Short(distance.grad_norm)});
    }
    Table tensors({"tensor", "weights>", "gradient>"});
    for (size_t i = 0; i < std::min(kTensorsShown, distances.size()); ++i) {
      tensors.Add({distances[i].name, Short(distances[i].weights),
                   Short(distances[i].gradient)});
    }
    console.out << "\n"
                << steps.Text("  ") << "\nafter step "
                << job.training().stop_after() << ", the furthest apart of "
                << distances.size() << " tensors\n"
                << tensors.Text("  ") << "\n";
    if (judgement.diverged > 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "there is nothing to compare with: on one rank, too, the loss is no "
          "number in step ",
          judgement.diverged));
    }
    if (judgement.within && !judgement.updated && judgement.parted == 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "there is nothing to compare with: gradients overflowed in each "
          "step of both, so that none updated anything; use more steps "
          "(--steps), or set a training.loss_scale below ",
          LastScale(ended[1])));
    }
    if (judgement.within && judgement.parted > 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "nothing can be said of the steps from ", judgement.parted,
          " on: there gradients overflowed in one of the two runs only, so "
          "that the other's updates are others. Up to there they are the "
          "same: ",
          judgement.figures, ". Set a training.loss_scale below ",
          LastScale(ended[1]), ", with which none overflow"));
    }
    if (!judgement.same) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the plan trains another model than one rank: ", judgement.figures));
    }
    console.out << "the plan trains the same model as one rank: "
                << judgement.figures << "\n";
    return absl::OkStatus();
  }

  std::string file_;
  int64_t steps_ = 3;
  std::vector<std::string> overrides_;
  RootFlags roots_;
  std::string work_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeVerify() { return std::make_unique<Verify>(); }

}  // namespace troupe
