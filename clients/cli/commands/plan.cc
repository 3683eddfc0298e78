#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/load_job.h"
#include "clients/cli/local_plan.h"
#include "clients/cli/root_flags.h"
#include "clients/cli/share_flags.h"
#include "clients/cli/view/explain_view.h"
#include "clients/cli/view/message_json.h"
#include "clients/cli/view/plan_view.h"
#include "clients/cli/view/search_svg.h"
#include "clients/cli/write_file.h"
#include "clients/cluster_file/cluster_file.h"
#include "clients/cluster_file/cluster_workers.h"
#include "clients/gantt/chart.h"
#include "clients/gantt/svg.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/graph/print_graph.h"
#include "proto/plan/model.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/ranks_needed.h"

namespace troupe {
namespace {

class PlanCommand final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("FILE", file_, "The job file (YAML)");
    flags.Integer("--workers", workers_, {1, kRanksMax},
                  {.value = "N",
                   .text = "Plan for N workers like this machine "
                           "[as many as the job has ranks]"});
    flags.Texts("--set", overrides_,
                {.value = "PATH=VALUE",
                 .text = "Set a field, as in parallelism.data=2; repeatable"});
    flags.Text("--cluster", hardware_,
               {.value = "FILE",
                .text = "Plan for the hardware that FILE describes "
                        "(docs/cluster.md), not for this machine"});
    flags.Switch("--json", json_, "Print the plan as JSON");
    flags.Switch("--programs", programs_, "Show every role's programs");
    flags.Switch("--units", units_,
                 "Print the model's units and ops as text that model.graph "
                 "reads (docs/graph.md), in place of the plan");
    flags.Switch("--explain", explain_,
                 "Compare the ways in which the job's ranks could share its "
                 "work (docs/layouts.md), in place of the plan");
    flags.Text("--picture", picture_,
               {.value = "FILE",
                .text = "With --explain, for parallelism: auto: draw all that "
                        "was estimated to an SVG file (docs/auto.md)"});
    flags.Text(
        "--gantt", gantt_,
        {.value = "FILE", .text = "Draw the predicted step to an SVG file"});
    share_.Declare(flags);
    flags.Text("--calibration", calibration_,
               {.value = "FILE",
                .text = "What `troupe-worker calibrate` measured [the user's "
                        "cache]"});
    roots_.Declare(flags);
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    if (explain_ && (programs_ || !gantt_.empty())) {
      return absl::InvalidArgumentError(
          "usage: --explain compares plans; --programs and --gantt show one");
    }
    if (!picture_.empty() && !explain_) {
      return absl::InvalidArgumentError(
          "usage: --picture draws what --explain compares; give both");
    }
    if (units_ && (programs_ || explain_ || json_ || !gantt_.empty())) {
      return absl::InvalidArgumentError(
          "usage: --units prints the model, in place of the plan; leave "
          "--programs, --explain, --json and --gantt out");
    }
    ASSIGN_OR_RETURN(const auto roots, roots_.Install());
    ASSIGN_OR_RETURN(
        const JobFile job,
        LoadJob(JobUse::kPlan, {.path = file_, .overrides = overrides_}));
    if (units_) {
      const absl::StatusOr<std::string> text = UnitsText(job.spec);
      if (!text.ok()) return job.Locate(text.status());
      console.out << *text;
      return absl::OkStatus();
    }
    if (!picture_.empty() && !LeavesParallelismOpen(job.spec)) {
      return absl::InvalidArgumentError(
          "usage: --picture draws the search of parallelism: auto, and the "
          "job says its parallelism; leave a size open, or leave --picture "
          "out");
    }
    absl::StatusOr<CompileResponse> compiled = Compile(job.spec, console);
    if (!compiled.ok()) return job.Locate(compiled.status());
    if (explain_) {
      const Explanation& explanation = compiled->explanation();
      if (!picture_.empty()) {
        RETURN_IF_ERROR(
            WriteFile({.path = picture_, .content = SearchSvg(explanation)}));
      }
      console.out << (json_ ? MessageJsonText(explanation)
                            : ExplanationText(explanation));
      return absl::OkStatus();
    }
    Plan& plan = *compiled->mutable_plan();
    if (!gantt_.empty()) {
      const Chart chart =
          LayOut(compiled->predicted(),
                 {.stages = {plan.stages().begin(), plan.stages().end()}});
      RETURN_IF_ERROR(
          WriteFile({.path = gantt_, .content = ChartSvg({chart})}));
    }
    if (json_) {
      console.out << MessageJsonText(plan);
      return absl::OkStatus();
    }
    if (compiled->explanation().has_search()) {
      console.out << ExplanationText(compiled->explanation()) << "\n";
    }
    console.out << PlanText(plan);
    if (programs_) console.out << "\n" << ProgramsText(plan);
    return absl::OkStatus();
  }

 private:
  // With the ops that are there in a job with dropout, too.
  static absl::StatusOr<std::string> UnitsText(const JobSpec& job) {
    ModelSpec model = job.model();
    RETURN_IF_ERROR(ResolveModel(model));
    if (IsSynthetic(model)) {
      return FieldError("model.architecture",
                        "synthetic units have no ops to print");
    }
    constexpr double kAnyDropout = 0.5;
    const int64_t length = job.training().has_sequence_length()
                               ? job.training().sequence_length()
                               : LongestSequenceOf(model).positions;
    ASSIGN_OR_RETURN(const UnitList units,
                     ModelUnits(model, {.sequences = 1,
                                        .sequence_length = length,
                                        .dropout = kAnyDropout}));
    return PrintGraph(
        units, {.vocab_size = model.vocab_size(),
                .max_position_embeddings = LongestSequenceOf(model).positions});
  }

  absl::StatusOr<CompileResponse> Compile(const JobSpec& job,
                                          const Console& console) {
    if (!hardware_.empty()) return PlanForHardware(job, console);
    if (cluster_.is_given()) return PlanInCluster(job, console);
    const bool open = LeavesParallelismOpen(job);
    if (open && workers_ == 0) {
      return absl::InvalidArgumentError(
          "usage: parallelism: auto is chosen for given workers; give "
          "--workers N, --cluster FILE, or --dir DIR of a running cluster");
    }
    ASSIGN_OR_RETURN(const WorkerShare share, share_.Share());
    return PlanLocally(
        job, {.workers =
                  workers_ > 0 ? static_cast<int>(workers_) : RanksNeeded(job),
              .share = share,
              .calibration = calibration_,
              .search = ThisProgram(),
              .explain = explain_,
              .extras = Extras(job, console)});
  }

  // For what a cluster file describes.
  absl::StatusOr<CompileResponse> PlanForHardware(
      const JobSpec& job, const Console& console) const {
    if (workers_ > 0 || share_.is_given() || !calibration_.empty() ||
        cluster_.is_given()) {
      return absl::InvalidArgumentError(
          "usage: --cluster FILE says what the workers are; leave --workers, "
          "what each gets, --calibration, --dir and --scheduler out");
    }
    RETURN_IF_ERROR(CheckSizes(job.parallelism()));
    ASSIGN_OR_RETURN(const ClusterSpec cluster, LoadClusterSpec(hardware_));
    const std::string& precision = job.training().precision();
    // Of an open job all that there are.
    const int count = LeavesParallelismOpen(job)
                          ? std::min(CountWorkers(cluster), kRanksMax)
                          : RanksNeeded(job);
    absl::StatusOr<std::vector<WorkerDescription>> workers = ClusterWorkers(
        cluster,
        {.count = count, .precision = precision.empty() ? "f32" : precision});
    if (!workers.ok()) return Annotate(workers.status(), hardware_);
    CompileRequest request;
    *request.mutable_job() = job;
    for (WorkerDescription& worker : *workers) {
      *request.add_workers() = std::move(worker);
    }
    request.set_explain(explain_);
    return PlanForWorkers(request, Extras(job, console), ThisProgram());
  }

  PlanExtras Extras(const JobSpec& job, const Console& console) const {
    return {.programs = programs_,
            .timeline = !gantt_.empty(),
            .progress = LeavesParallelismOpen(job) && console.terminal};
  }

  // For the workers of a running cluster. It predicts, but sends no timeline.
  absl::StatusOr<CompileResponse> PlanInCluster(const JobSpec& job,
                                                const Console& console) {
    if (workers_ > 0 || share_.is_given() || !gantt_.empty()) {
      return absl::InvalidArgumentError(
          "usage: --workers, what each gets, and --gantt plan without a "
          "cluster; leave --dir and --scheduler out");
    }
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    CompileResponse response;
    if (explain_) {
      ASSIGN_OR_RETURN(*response.mutable_explanation(),
                       client->ExplainJob(job));
      return response;
    }
    PlanJobRequest request;
    *request.mutable_job() = job;
    request.set_programs(programs_);
    ASSIGN_OR_RETURN(PlanJobResponse planned, client->PlanJob(request));
    response.mutable_plan()->Swap(planned.mutable_plan());
    response.mutable_explanation()->Swap(planned.mutable_explanation());
    return response;
  }

  std::string file_;
  int64_t workers_ = 0;
  std::vector<std::string> overrides_;
  RootFlags roots_;
  bool json_ = false;
  bool programs_ = false;
  bool units_ = false;
  bool explain_ = false;
  std::string gantt_;
  std::string picture_;
  std::string hardware_;  // a cluster file
  ShareFlags share_;
  std::string calibration_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakePlan() { return std::make_unique<PlanCommand>(); }

}  // namespace troupe
