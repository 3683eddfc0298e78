#include <unistd.h>

#include <algorithm>
#include <cmath>
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
#include "clients/cli/view/format.h"
#include "clients/verify/compare.h"
#include "clients/verify/verify_jobs.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr size_t kTensorsShown = 10;

// One of the two runs, once it has ended.
struct Ended {
  std::vector<double> losses;
  RunCheckpoints checkpoints;
  OptimizerSpec optimizer;
};

struct Largest {
  double loss = 0;
  double gradient = 0;
  double weights = 0;
};

std::string Short(double distance) { return absl::StrFormat("%.1e", distance); }

class Verify final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("FILE", file_, "The job file (YAML)");
    flags.Integer("--steps", steps_, {1, 1 << 20},
                  {.value = "N", .text = "First steps of the job to run [3]"});
    flags.Texts("--set", overrides_,
                {.value = "PATH=VALUE",
                 .text = "Set a field, as in parallelism.data=2; repeatable"});
    flags.Text("--work", work_,
               {.value = "DIR",
                .text = "Where both runs save; workers and this command must "
                        "see it [a folder in the temporary one]"});
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    Interrupt interrupt;
    ASSIGN_OR_RETURN(const JobFile job,
                     LoadJob({.path = file_, .overrides = overrides_}));
    RETURN_IF_ERROR(job.Locate(CheckVerifiable(job.spec)));
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    std::error_code error;
    const std::filesystem::path folder =  // not the workers' current one
        work_.empty() ? std::filesystem::temp_directory_path(error)
                      : std::filesystem::absolute(work_, error);
    const std::string work =
        absl::StrCat(folder.string(), "/troupe-verify-", getpid());
    const VerifyJobs jobs =
        MakeVerifyJobs(job.spec, {.steps = steps_, .directory = work});
    const absl::Status status = Compare(*client, job, jobs, interrupt, console);
    std::filesystem::remove_all(work, error);
    return status;
  }

 private:
  absl::Status Compare(Client& client, const JobFile& job,
                       const VerifyJobs& jobs, Interrupt& interrupt,
                       Console& console) {
    std::vector<int64_t> ids;
    for (const JobSpec* spec : {&jobs.run, &jobs.reference}) {
      const absl::StatusOr<SubmitJobResponse> accepted = client.Submit(*spec);
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
      absl::StatusOr<Ended> run = Await(client, id, interrupt);
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
    return Judge(jobs, ended, distances, console);
  }

  // Ends the runs that still go on; they would be of no use.
  static void CancelAll(Client& client, const std::vector<int64_t>& ids) {
    for (const int64_t id : ids) client.Cancel(id).status().IgnoreError();
  }

  static absl::StatusOr<Ended> Await(Client& client, int64_t id,
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
    for (const StepRecord& step : job.steps()) {
      ended.losses.push_back(step.loss());
    }
    for (const CheckpointRecord& checkpoint : job.status().checkpoints()) {
      ended.checkpoints.before = ended.checkpoints.after;
      ended.checkpoints.after = checkpoint.path();
    }
    ended.optimizer = job.plan().job().optimizer();
    return ended;
  }

  absl::Status Judge(const VerifyJobs& jobs, const std::vector<Ended>& ended,
                     const std::vector<TensorDistance>& distances,
                     Console& console) {
    Largest largest;
    Table steps({"step>", "loss>", "one rank>", "apart>"});
    const size_t count =
        std::min(ended[0].losses.size(), ended[1].losses.size());
    for (size_t i = 0; i < count; ++i) {
      const double run = ended[0].losses[i];
      const double reference = ended[1].losses[i];
      const double apart = std::abs(run - reference) / std::abs(reference);
      largest.loss = std::max(largest.loss, apart);
      steps.Add({absl::StrCat(i + 1), NumberText(run, 6),
                 NumberText(reference, 6), Short(apart)});
    }
    Table tensors({"tensor", "weights>", "gradient>"});
    for (const TensorDistance& distance : distances) {
      largest.weights = std::max(largest.weights, distance.weights);
      largest.gradient = std::max(largest.gradient, distance.gradient);
    }
    for (size_t i = 0; i < std::min(kTensorsShown, distances.size()); ++i) {
      tensors.Add({distances[i].name, Short(distances[i].weights),
                   Short(distances[i].gradient)});
    }
    console.out << "\n"
                << steps.Text("  ") << "\nafter step " << count
                << ", the furthest apart of " << distances.size()
                << " tensors\n"
                << tensors.Text("  ") << "\n";
    return Verdict(ToleranceOf(jobs.run.training().precision()), largest,
                   console);
  }

  static absl::Status Verdict(const VerifyTolerance& tolerance,
                              const Largest& largest, Console& console) {
    const std::string figures = absl::StrCat(
        "loss ", Short(largest.loss), " of ", Short(tolerance.loss),
        ", gradients ", Short(largest.gradient), " of ",
        Short(tolerance.gradient), ", weights ", Short(largest.weights), " of ",
        Short(tolerance.weights));
    // Written so that NaN is no pass.
    if (largest.loss <= tolerance.loss &&
        largest.gradient <= tolerance.gradient &&
        largest.weights <= tolerance.weights) {
      console.out << "the plan trains the same model as one rank: " << figures
                  << "\n";
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the plan trains another model than one rank: ", figures));
  }

  std::string file_;
  int64_t steps_ = 3;
  std::vector<std::string> overrides_;
  std::string work_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeVerify() { return std::make_unique<Verify>(); }

}  // namespace troupe
