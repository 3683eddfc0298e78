#include "scheduler/planner/fit_recompute.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "proto/plan/unit_list.h"
#include "scheduler/passes/nominal_cost.h"
#include "scheduler/planner/remedies.h"
#include "scheduler/planner/start_draft.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

// A unit keeps less than before.
struct Step {
  int unit = 0;
  Keeps keeps = Keeps::kAll;
  double seconds = 0;  // that it costs, at nominal speed
  double bytes = 0;    // that it saves

  double Price() const { return seconds / bytes; }
};

// What each unit costs and keeps where all keep this.
std::vector<Unit> UnitsThatKeep(const Plan& plan, Keeps keeps) {
  UnitList list;
  list.units.assign(plan.units().begin(), plan.units().end());
  list.tables.assign(plan.tables().begin(), plan.tables().end());
  MarkAgain(std::vector<Keeps>(list.units.size(), keeps), list);
  return std::move(list.units);
}

// From keeping all: those worth their time, cheapest byte first. A unit's stand
// in their order.
std::vector<Step> StepsOf(const Plan& plan, bool last_turns_at_once) {
  const std::vector<Unit> costly = UnitsThatKeep(plan, Keeps::kCostly);
  const std::vector<Unit> input = UnitsThatKeep(plan, Keeps::kInput);
  std::vector<Step> steps;
  for (int u = 0; u < plan.units_size(); ++u) {
    if (u + 1 == plan.units_size() && last_turns_at_once) continue;
    const auto step = [&](const Unit& from, const Unit& to, Keeps keeps) {
      return Step{
          .unit = u,
          .keeps = keeps,
          .seconds =
              NominalSeconds(to.recompute()) -
              (from.has_recompute() ? NominalSeconds(from.recompute()) : 0),
          .bytes = static_cast<double>(from.stash_bytes() - to.stash_bytes())};
    };
    const Step first = step(plan.units(u), costly[u], Keeps::kCostly);
    const Step second = step(costly[u], input[u], Keeps::kInput);
    const Step both = step(plan.units(u), input[u], Keeps::kInput);
    if (both.bytes <= 0) continue;
    const bool in_one =
        first.bytes <= 0 || second.bytes <= 0 || second.Price() < first.Price();
    if (in_one) {
      steps.push_back(second.bytes > 0 ? both : first);
    } else {
      steps.push_back(first);
      steps.push_back(second);
    }
  }
  std::stable_sort(
      steps.begin(), steps.end(),
      [](const Step& a, const Step& b) { return a.Price() < b.Price(); });
  return steps;
}

// How many of its steps each role takes: the least that is enough.
class Search {
 public:
  Search(const Plan& keeps_all, const std::vector<WorkerDescription>& workers,
         const BuildPlan& build, const std::vector<Step>& steps)
      : keeps_all_(keeps_all), workers_(workers), build_(build) {
    for (const Role& role : keeps_all.roles()) {
      std::vector<Step>& own = steps_.emplace_back();
      std::copy_if(steps.begin(), steps.end(), std::back_inserter(own),
                   [&](const Step& step) {
                     return FindPlacement(role, step.unit) != nullptr;
                   });
      enough_.push_back(own.size());
    }
  }

  // nullopt: all steps are not enough for some role.
  absl::StatusOr<absl::optional<JobSpec>> Run() {
    const std::vector<bool> fit = FitOf(keeps_all_);
    std::vector<size_t> below(fit.size());  // more than this number are needed
    for (size_t r = 0; r < fit.size(); ++r) {
      if (fit[r]) enough_[r] = 0;
    }
    // All steps at first.
    std::vector<size_t> tried = enough_;
    bool open = true;
    while (open) {
      ASSIGN_OR_RETURN(const Plan plan, build_(JobOf(tried)));
      const std::vector<bool> fits = FitOf(plan);
      open = false;
      for (size_t r = 0; r < fits.size(); ++r) {
        if (!fits[r] && tried[r] == steps_[r].size()) return absl::nullopt;
        (fits[r] ? enough_[r] : below[r]) = tried[r];
        if (enough_[r] <= below[r] && !fits[r]) {
          // What others make again takes scratch of it, too.
          enough_[r] = steps_[r].size();
          open = true;
        }
        tried[r] = enough_[r];
        if (enough_[r] > below[r] + 1) {
          tried[r] = (below[r] + enough_[r]) / 2;
          open = true;
        }
      }
    }
    // Each was tried beside other counts of the others, whose units may need
    // more scratch.
    JobSpec job = JobOf(enough_);
    ASSIGN_OR_RETURN(const Plan plan, build_(job));
    if (!CheckMemory(plan, workers_).ok()) return absl::nullopt;
    return absl::make_optional(std::move(job));
  }

 private:
  std::vector<bool> FitOf(const Plan& plan) const {
    const std::vector<absl::Status> ranks = CheckMemoryOfRanks(plan, workers_);
    std::vector<bool> fits;
    for (const Role& role : plan.roles()) {
      const std::vector<int> of_role = RanksOf(plan.mesh(), role);
      fits.push_back(std::all_of(of_role.begin(), of_role.end(),
                                 [&](int rank) { return ranks[rank].ok(); }));
    }
    return fits;
  }

  JobSpec JobOf(const std::vector<size_t>& counts) const {
    std::vector<Keeps> keeps(keeps_all_.units_size(), Keeps::kAll);
    for (size_t r = 0; r < counts.size(); ++r) {
      for (size_t s = 0; s < counts[r]; ++s) {
        Keeps& of = keeps[steps_[r][s].unit];
        of = std::max(of, steps_[r][s].keeps);
      }
    }
    JobSpec job = keeps_all_.job();
    // The same stages, though their costs change: or steps would change roles.
    ParallelismSpec& parallelism = *job.mutable_parallelism();
    parallelism.clear_stages();
    for (const Stage& stage : keeps_all_.stages()) {
      parallelism.add_stages(stage.unit_count());
    }
    RecomputeSpec& spec = *job.mutable_memory()->mutable_recompute();
    spec.set_mode(kRecomputeList);
    for (size_t u = 0; u < keeps.size(); ++u) {
      if (keeps[u] == Keeps::kCostly) spec.add_selective_units(u);
      if (keeps[u] == Keeps::kInput) spec.add_units(u);
    }
    return job;
  }

  const Plan& keeps_all_;
  const std::vector<WorkerDescription>& workers_;
  const BuildPlan& build_;
  std::vector<std::vector<Step>> steps_;  // by role
  std::vector<size_t> enough_;            // by role
};

// As predicted; infinite where it does not fit.
absl::StatusOr<double> StepSeconds(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  ASSIGN_OR_RETURN(const Plan plan, build(job));
  if (!CheckMemory(plan, workers).ok()) {
    return std::numeric_limits<double>::infinity();
  }
  return PredictedStepSeconds(plan, workers);
}

}  // namespace

absl::StatusOr<JobSpec> FitRecompute(
    const Plan& keeps_all, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  ASSIGN_OR_RETURN(const Draft draft, StartDraft(keeps_all.job()));
  const std::vector<Step> steps =
      StepsOf(keeps_all, LastStageTurnsAtOnce(draft.compute_order));
  ASSIGN_OR_RETURN(const absl::optional<JobSpec> job,
                   Search(keeps_all, workers, build, steps).Run());
  const std::vector<std::string> modes = LeanerRecomputeModes(kRecomputeNone);
  JobSpec best = keeps_all.job();
  best.mutable_memory()->mutable_recompute()->set_mode(modes.back());
  double least = std::numeric_limits<double>::infinity();
  if (job.has_value()) {
    best = *job;
    ASSIGN_OR_RETURN(least, StepSeconds(best, workers, build));
  }
  for (const std::string& mode : modes) {
    JobSpec of_all = keeps_all.job();
    of_all.mutable_memory()->mutable_recompute()->set_mode(mode);
    ASSIGN_OR_RETURN(const double seconds, StepSeconds(of_all, workers, build));
    if (seconds >= least) continue;
    best = std::move(of_all);
    least = seconds;
  }
  return best;
}

}  // namespace troupe
