#include "scheduler/planner/planner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/must_not_wait.h"
#include "proto/base/status.h"
#include "proto/plan/check_program.h"
#include "proto/plan/mesh.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/roles.h"
#include "proto/plan/sharing.h"
#include "proto/plan/ways.h"
#include "proto/plan/worker_refusal.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/check_devices.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/planner/choose_ways.h"
#include "scheduler/planner/fit.h"
#include "scheduler/planner/fit_memory.h"
#include "scheduler/planner/fit_recompute.h"
#include "scheduler/planner/fit_stages.h"
#include "scheduler/planner/gather_ahead.h"
#include "scheduler/planner/plan_size.h"
#include "scheduler/planner/remedies.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/resolve_zero_weights.h"
#include "scheduler/planner/sizes_text.h"
#include "scheduler/planner/split_by_speed.h"
#include "scheduler/planner/start_draft.h"
#include "scheduler/planner/weights_by_memory.h"
#include "scheduler/simulate/prediction.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

// Builds plans of other jobs for the same workers, up to their prediction.
class Builder {
 public:
  // Borrows both. Refuses plans of more instructions. Programs are checked
  // where a plan is to be run.
  Builder(const std::vector<WorkerDescription>& workers,
          const MayGoOn& may_go_on, int64_t instructions_max, bool checks)
      : workers_(workers),
        may_go_on_(may_go_on),
        instructions_max_(instructions_max),
        checks_(checks) {}

  // To be compared with others; and to be shown or run.
  absl::StatusOr<Plan> Build(const JobSpec& resolved) const {
    return BuildWith(resolved, Quick());
  }
  absl::StatusOr<Plan> BuildToStay(const JobSpec& resolved) const {
    GatherOptions options = Quick();
    options.fewest_bytes = true;
    return BuildWith(resolved, options);
  }
  // With gathers one step of work ahead, or as far as is of use.
  absl::StatusOr<Plan> BuildOneAhead(const JobSpec& resolved) const {
    ASSIGN_OR_RETURN(Draft draft, Programs(resolved));
    return Checked(GatherOneAhead(std::move(draft)));
  }
  absl::StatusOr<Plan> BuildFarthest(const JobSpec& resolved) const {
    ASSIGN_OR_RETURN(Draft draft, Programs(resolved));
    return Checked(GatherFarthest(std::move(draft), Quick()));
  }
  // Of one that Build made.
  absl::StatusOr<bool> LacksRoom(const Plan& plan) const {
    ASSIGN_OR_RETURN(Draft draft, Programs(plan.job()));
    return GathersLackRoom(std::move(draft), plan, Quick());
  }

 private:
  GatherOptions Quick() const {
    return {.workers = workers_, .may_go_on = may_go_on_};
  }
  absl::StatusOr<Plan> BuildWith(const JobSpec& resolved,
                                 const GatherOptions& options) const {
    ASSIGN_OR_RETURN(Draft draft, Programs(resolved));
    ASSIGN_OR_RETURN(Plan plan, GatherAhead(std::move(draft), options));
    return Checked(std::move(plan));
  }
  absl::StatusOr<Draft> Programs(const JobSpec& resolved) const {
    RETURN_IF_ERROR(Ask(may_go_on_));
    ASSIGN_OR_RETURN(Draft draft, StartDraft(resolved, workers_));
    const PlanSize size = PlanSizeOf(draft);
    RETURN_IF_ERROR(CheckPlanSize(draft, size, instructions_max_));
    // What it built before may still be there, to be compared. Of these the
    // longest counts, not their sum: two of the most would have no room.
    largest_ = std::max(largest_, size.total());
    RETURN_IF_ERROR(AskForRoom(may_go_on_, largest_));
    draft.hosts = HostsOf(draft.plan.mesh());
    for (const Pass& pass : ProgramPasses()) {
      RETURN_IF_ERROR(Ask(may_go_on_));
      pass.Run(draft);
    }
    RETURN_IF_ERROR(Ask(may_go_on_));
    return draft;
  }
  // Nothing where some worker does not say its own.
  std::vector<std::string> HostsOf(const Mesh& mesh) const {
    std::vector<std::string> hosts;
    for (size_t rank = 0; rank < static_cast<size_t>(MeshSize(mesh)); ++rank) {
      if (rank >= workers_.size() || workers_[rank].host().empty()) return {};
      hosts.push_back(workers_[rank].host());
    }
    return hosts;
  }
  absl::StatusOr<Plan> Checked(Plan plan) const {
    RETURN_IF_ERROR(Ask(may_go_on_));
    if (checks_) RETURN_IF_ERROR(CheckPrograms(plan));
    return plan;
  }

  const std::vector<WorkerDescription>& workers_;
  const MayGoOn& may_go_on_;
  const int64_t instructions_max_;
  const bool checks_;
  mutable int64_t largest_ = 0;  // of its plans, in instructions
};

// Chunks fill devices as far as the smallest one goes, or less where the job
// says so.
absl::Status LimitChunks(const std::vector<WorkerDescription>& workers,
                         JobSpec& job) {
  MemorySpec& memory = *job.mutable_memory();
  if (!memory.has_chunk_megabytes()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Draft draft, StartDraft(job));
  const absl::optional<int64_t> least = LeastOfDevice(draft.plan, workers);
  if (!least.has_value()) return absl::OkStatus();
  if (memory.has_device_bytes() && memory.device_bytes() <= *least) {
    return absl::OkStatus();
  }
  memory.set_device_bytes(*least);
  return absl::OkStatus();
}

// Where the job leaves open whether checkpoints are written in the background,
// they are if the memory for the copy is there as all else is given. And stages
// are others where so all fits (fit_stages.h).
absl::StatusOr<Plan> BuildAsGiven(JobSpec& resolved,
                                  const std::vector<WorkerDescription>& workers,
                                  const BuildPlan& build) {
  CheckpointSpec& checkpoint = *resolved.mutable_checkpoint();
  if (!checkpoint.has_background()) {
    checkpoint.set_background(true);
    ASSIGN_OR_RETURN(Plan plan, build(resolved));
    if (CheckMemory(plan, workers).ok()) return plan;
    checkpoint.set_background(false);
  }
  ASSIGN_OR_RETURN(Plan plan, build(resolved));
  if (CheckMemory(plan, workers).ok()) return plan;
  ASSIGN_OR_RETURN(absl::optional<Plan> other, FitStages(plan, workers, build));
  if (!other.has_value()) return plan;
  resolved = other->job();
  return *std::move(other);
}

// The same once more where that was for want of what has been chosen since.
absl::StatusOr<Plan> WithBackgroundAsGiven(
    Plan plan, const CheckpointSpec& asked,
    const std::vector<WorkerDescription>& workers, const BuildPlan& build) {
  if (asked.has_background() || plan.job().checkpoint().background() ||
      !CheckMemory(plan, workers).ok()) {
    return plan;
  }
  JobSpec job = plan.job();
  job.mutable_checkpoint()->set_background(true);
  ASSIGN_OR_RETURN(Plan other, build(job));
  if (!CheckMemory(other, workers).ok()) return plan;
  other.mutable_prediction()->set_chosen_memory(
      plan.prediction().chosen_memory());
  return other;
}

// As near as there is to what fits.
struct Built {
  Plan plan;
  // By `memory: auto`, of a plan that does not fit: what was changed.
  std::string closest;
};

// `memory: auto`, of a plan that fits.
absl::StatusOr<Built> BuildWithQuickerMemory(
    const JobSpec& job, Plan plan,
    const std::vector<WorkerDescription>& workers, const Builder& builder,
    const BuildPlan& build) {
  ASSIGN_OR_RETURN(const bool lacks_room, builder.LacksRoom(plan));
  if (lacks_room) {
    ASSIGN_OR_RETURN(const Remedy remedy, FitMemory(job, plan, workers, build));
    ASSIGN_OR_RETURN(Plan quicker, build(remedy.job));
    if (!remedy.changes.empty() && remedy.longer < -kGainOfSettings &&
        CheckMemory(quicker, workers).ok()) {
      quicker.mutable_prediction()->set_chosen_memory(
          absl::StrCat(remedy.Text(), "; without it all fits, with gathers ",
                       GathersText(plan)));
      return Built{.plan = std::move(quicker), .closest = ""};
    }
  }
  plan.mutable_prediction()->set_chosen_memory("nothing, as all fits");
  return Built{.plan = std::move(plan), .closest = ""};
}

// `memory: auto`.
absl::StatusOr<Built> BuildWithChosenMemory(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const Builder& builder, const BuildPlan& build) {
  JobSpec as_given = WithNothingChosen(job);
  RETURN_IF_ERROR(LimitChunks(workers, as_given));
  ASSIGN_OR_RETURN(Plan plan, BuildAsGiven(as_given, workers, build));
  const absl::Status lacks = CheckMemory(plan, workers);
  if (lacks.ok()) {
    return BuildWithQuickerMemory(job, std::move(plan), workers, builder,
                                  build);
  }
  ASSIGN_OR_RETURN(const Remedy remedy, FitMemory(job, plan, workers, build));
  ASSIGN_OR_RETURN(plan, build(remedy.job));
  if (!CheckMemory(plan, workers).ok()) {
    return Built{.plan = std::move(plan),
                 .closest = remedy.changes.empty() ? "" : remedy.Text()};
  }
  plan.mutable_prediction()->set_chosen_memory(
      absl::StrCat(remedy.Text(), "; without it ", lacks.message()));
  return Built{.plan = std::move(plan), .closest = ""};
}

// `recompute: auto`: as little as fits, or as makes room for gathers where that
// is quicker.
absl::StatusOr<Plan> BuildWithChosenRecompute(
    Plan plan, const std::vector<WorkerDescription>& workers,
    const Builder& builder, const BuildPlan& build) {
  const JobSpec job = plan.job();
  if (!CheckMemory(plan, workers).ok()) {
    ASSIGN_OR_RETURN(const JobSpec fits, FitRecompute(plan, workers, build));
    ASSIGN_OR_RETURN(plan, build(fits));
  }
  ASSIGN_OR_RETURN(const bool lacks_room, builder.LacksRoom(plan));
  if (!lacks_room) return plan;
  double least = PredictedStepSeconds(plan, workers);
  for (const auto build_with_room :
       {&Builder::BuildOneAhead, &Builder::BuildFarthest}) {
    const BuildPlan roomy = [&](const JobSpec& other) {
      return (builder.*build_with_room)(other);
    };
    ASSIGN_OR_RETURN(const Plan wanted, roomy(job));
    ASSIGN_OR_RETURN(const JobSpec again, FitRecompute(wanted, workers, roomy));
    ASSIGN_OR_RETURN(Plan other, build(again));
    if (!CheckMemory(other, workers).ok()) continue;
    const double seconds = PredictedStepSeconds(other, workers);
    if (seconds >= least) continue;
    least = seconds;
    plan = std::move(other);
  }
  return plan;
}

// Whether plans are compared for it.
bool ChoosesMemory(const MemorySpec& memory) {
  return LeavesOpen(memory) || memory.recompute().mode() == kRecomputeAuto;
}

absl::StatusOr<Built> BuildForMemory(
    JobSpec resolved, const std::vector<WorkerDescription>& workers,
    const Builder& builder, const BuildPlan& build) {
  const CheckpointSpec asked = resolved.checkpoint();
  Built built;
  if (LeavesOpen(resolved.memory())) {
    ASSIGN_OR_RETURN(built,
                     BuildWithChosenMemory(resolved, workers, builder, build));
  } else {
    RETURN_IF_ERROR(LimitChunks(workers, resolved));
    ASSIGN_OR_RETURN(built.plan, BuildAsGiven(resolved, workers, build));
    if (!ChoosesMemory(resolved.memory())) return built;
    ASSIGN_OR_RETURN(built.plan,
                     BuildWithChosenRecompute(std::move(built.plan), workers,
                                              builder, build));
  }
  ASSIGN_OR_RETURN(built.plan, WithBackgroundAsGiven(std::move(built.plan),
                                                     asked, workers, build));
  return built;
}

absl::Status CheckBuilt(const Built& built,
                        const std::vector<WorkerDescription>& workers,
                        const BuildPlan& build) {
  const absl::Status fits = CheckFit(built.plan, workers, build);
  if (fits.ok() || built.closest.empty()) return fits;
  return Annotate(
      fits, absl::StrCat("memory: auto finds nothing that fits; closest is ",
                         built.closest));
}

absl::Status CheckEnough(const JobSpec& resolved,
                         const std::vector<WorkerDescription>& workers) {
  const int ranks = RanksNeeded(resolved);
  if (static_cast<int>(workers.size()) < ranks) {
    return absl::FailedPreconditionError(
        absl::StrCat(SizesText(resolved.parallelism()), " wants ", ranks,
                     " workers, there are ", workers.size(),
                     "; start more workers or use a smaller size"));
  }
  return absl::OkStatus();
}

// What CompilePlan and TryPlan have in common.
struct PlanOptions {
  bool must_fit = true;
  GatherRoom gather_room = GatherRoom::kFewest;
  int64_t instructions_max = kInstructionsMax;
  const MayGoOn& may_go_on;
  Timeline* timeline = nullptr;  // of the predicted step, where it is wanted
};
absl::StatusOr<Plan> PlanWith(const JobSpec& job,
                              const std::vector<WorkerDescription>& workers,
                              const PlanOptions& options) {
  CheckMayWait("a job is planned");
  ASSIGN_OR_RETURN(const JobSpec asked, ResolveJob(job));
  RETURN_IF_ERROR(ForWorkers(CheckEnough(asked, workers)));
  // Most often as many as there are ranks: then nothing is copied.
  const size_t ranks = RanksNeeded(asked);
  std::vector<WorkerDescription> first;
  if (workers.size() > ranks) {
    first.assign(workers.begin(), workers.begin() + ranks);
  }
  const std::vector<WorkerDescription>& used =
      workers.size() > ranks ? first : workers;
  RETURN_IF_ERROR(ForWorkers(CheckWorkersFit(asked, used)));
  ASSIGN_OR_RETURN(const JobSpec resolved,
                   WithMicroBatchesBySpeed(asked, used));
  const Builder builder(used, options.may_go_on, options.instructions_max,
                        /*checks=*/options.must_fit);
  const BuildPlan build_even = [&builder](const JobSpec& other) {
    return builder.Build(other);
  };
  const BuildPlan build = ByMemory(used, build_even, build_even);
  const BuildPlan build_to_stay = ByMemory(
      used, build_even,
      [&builder](const JobSpec& other) { return builder.BuildToStay(other); });
  const bool stays = options.gather_room == GatherRoom::kFewest;
  const bool chooses = ChoosesMemory(resolved.memory());
  ASSIGN_OR_RETURN(Built built,
                   BuildForMemory(resolved, used, builder,
                                  stays && !chooses ? build_to_stay : build));
  if (LeavesOpen(resolved.memory()) && !SaysSizesOfSlices(job.parallelism()) &&
      !CheckMemory(built.plan, used).ok()) {
    ASSIGN_OR_RETURN(absl::optional<Plan> fits,
                     FitWeights(built.closest,
                                !resolved.parallelism().has_zero(), built.plan,
                                used, build));
    if (fits.has_value()) built = {.plan = *std::move(fits), .closest = ""};
  }
  if (options.must_fit) {
    RETURN_IF_ERROR(ForWorkers(CheckBuilt(built, used, build)));
  }
  Plan& plan = built.plan;
  const std::string chosen_memory = plan.prediction().chosen_memory();
  if (stays && chooses && GathersUnits(plan)) {
    ASSIGN_OR_RETURN(plan, build_to_stay(plan.job()));
  }
  const std::string gathers = plan.prediction().gathers();
  ChooseBackends(used, plan.mesh(), *plan.mutable_groups());
  RETURN_IF_ERROR(ForWorkers(ChooseWays(used, plan)));
  if (options.must_fit) plan.set_fingerprint(PlanFingerprint(plan));
  RETURN_IF_ERROR(Ask(options.may_go_on));
  Prediction prediction = Predict(plan, used, options.timeline);
  prediction.set_chosen_memory(chosen_memory);
  prediction.set_gathers(gathers);
  if (options.must_fit) {
    prediction.set_worst_routing_seconds(WorstRoutingSeconds(used, plan));
  }
  *plan.mutable_prediction() = std::move(prediction);
  return std::move(plan);
}

}  // namespace

absl::StatusOr<Plan> CompilePlan(const JobSpec& job,
                                 const std::vector<WorkerDescription>& workers,
                                 const MayGoOn& may_go_on) {
  return PlanWith(job, workers, {.may_go_on = may_go_on});
}

absl::StatusOr<PlanAndStep> CompilePlanAndStep(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on) {
  PlanAndStep result;
  ASSIGN_OR_RETURN(result.plan, PlanWith(job, workers,
                                         {.may_go_on = may_go_on,
                                          .timeline = &result.step}));
  return result;
}

absl::StatusOr<Plan> TryPlan(const JobSpec& job,
                             const std::vector<WorkerDescription>& workers,
                             GatherRoom gather_room, const MayGoOn& may_go_on,
                             absl::optional<int64_t> instructions_max) {
  const int64_t most = gather_room == GatherRoom::kAll
                           ? kComparedInstructionsMax
                           : kInstructionsMax;
  return PlanWith(job, workers,
                  {.must_fit = false,
                   .gather_room = gather_room,
                   .instructions_max = instructions_max.value_or(most),
                   .may_go_on = may_go_on});
}

absl::optional<PlanAndStep> WithWaysOf(
    const Plan& before, const std::vector<WorkerDescription>& workers,
    const Plan& planned) {
  PlanAndStep kept = {.plan = planned};
  Plan& plan = kept.plan;
  const std::vector<WorkerDescription> used(
      workers.begin(), workers.begin() + MeshSize(plan.mesh()));
  for (Group& group : *plan.mutable_groups()) group.clear_carriers();
  ChooseBackends(used, plan.mesh(), *plan.mutable_groups());
  // Of these workers and that job nothing is refused: it was planned for them.
  if (!ChooseWays(used, plan, &before).ok()) return absl::nullopt;
  if (HaveSameWays(plan, planned)) return absl::nullopt;
  plan.set_fingerprint(PlanFingerprint(plan));
  Prediction prediction = Predict(plan, used, &kept.step);
  const Prediction& old = planned.prediction();
  prediction.set_chosen_memory(old.chosen_memory());
  prediction.set_gathers(old.gathers());
  prediction.set_worst_routing_seconds(WorstRoutingSeconds(used, plan));
  *plan.mutable_prediction() = std::move(prediction);
  return kept;
}

}  // namespace troupe
