#include "scheduler/search/explain_choice.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/planned_way.h"
#include "scheduler/search/changes.h"
#include "scheduler/search/estimate.h"
#include "scheduler/search/objective.h"

namespace troupe {
namespace {

// Of what a search may simulate.
constexpr int kShareOfChange = 20;
// Choices that differ by less are taken for equal: estimates and short steps do
// not tell them apart.
constexpr double kSameMargin = 0.005;

class Comparison {
 public:
  Comparison(const JobSpec& job, const std::vector<WorkerDescription>& workers,
             const MayGoOn& may_go_on, const SearchProgress& progress)
      : job_(job),
        workers_(workers),
        may_go_on_(may_go_on),
        progress_(progress) {}

  absl::StatusOr<Explanation> Run() {
    ASSIGN_OR_RETURN(ChosenWays chosen,
                     ChooseParallelism(job_, workers_,
                                       SearchOptions{.may_go_on = may_go_on_,
                                                     .progress = progress_,
                                                     .error = kEstimateError,
                                                     .known = &known_,
                                                     .estimates = true}));
    choice_ = chosen.jobs.front();
    fields_ = chosen.explanation.ways(0).fields();
    absl::Status ended;
    for (const InputChange& change : Changes()) {
      Changeable changed = {.job = job_, .workers = workers_};
      if (!change.make(changed)) continue;
      ChangedChoice& added =
          *chosen.explanation.mutable_search()->add_changes();
      if (ended.ok()) {
        if (progress_) progress_(absl::StrCat("with ", change.text));
        absl::StatusOr<ChangedChoice> choice = ChoiceWith(change, changed);
        if (choice.ok()) added = *std::move(choice);
        ended = choice.status();
      }
      if (!ended.ok()) added = NotTried(change, ended);
    }
    return std::move(chosen.explanation);
  }

 private:
  // The choice stands, though it was not compared to the end.
  static ChangedChoice NotTried(const InputChange& change,
                                const absl::Status& ended) {
    ChangedChoice result;
    result.set_change(
        absl::StrCat(change.text, ": not tried: ", ended.message()));
    result.set_is_same(true);
    return result;
  }

  // The choice as it is, where there is something else.
  absl::StatusOr<ExplainedWay> ChoiceIn(const Changeable& changed) const {
    JobSpec job = choice_;
    job.mutable_training()->set_global_batch_size(
        changed.job.training().global_batch_size());
    const std::vector<WorkerDescription> used(
        changed.workers.begin(), changed.workers.begin() + RanksNeeded(job));
    ExplainedWay way;
    const absl::StatusOr<PlannedWay> planned =
        PlanToCompare(job, used, may_go_on_);
    if (planned.ok()) {
      DescribeWay(*planned, used, way);
    } else if (!absl::IsInvalidArgument(planned.status())) {
      return planned.status();
    }
    return way;
  }

  absl::StatusOr<ChangedChoice> ChoiceWith(const InputChange& change,
                                           const Changeable& changed) {
    ChangedChoice result;
    result.set_change(change.text);
    ASSIGN_OR_RETURN(const ExplainedWay choice, ChoiceIn(changed));
    if (choice.fits()) result.set_choice_step_seconds(choice.step_seconds());
    KnownCosts of_change;
    const absl::StatusOr<ChosenWays> other = ChooseParallelism(
        changed.job, changed.workers,
        SearchOptions{
            .may_go_on = may_go_on_,
            .instructions_max = kInstructionsSimulatedMax / kShareOfChange,
            .error = kEstimateError,
            .known = change.keeps_costs ? &known_ : &of_change,
            .briefly = true});
    if (!other.ok() && !absl::IsInvalidArgument(other.status())) {
      return other.status();
    }
    if (other.ok() && IsBetter(*other, choice, changed)) {
      const ExplainedWay& way = other->explanation.ways(0);
      *result.mutable_fields() = way.fields();
      result.set_step_seconds(way.step_seconds());
      result.set_tokens_per_second(way.tokens_per_second());
    } else if (choice.fits()) {
      result.set_is_same(true);
      *result.mutable_fields() = fields_;
      result.set_step_seconds(choice.step_seconds());
      result.set_tokens_per_second(choice.tokens_per_second());
    }
    return result;
  }

  // What the search has found, than the choice as it is.
  bool IsBetter(const ChosenWays& found, const ExplainedWay& choice,
                const Changeable& changed) const {
    if (!choice.fits()) return true;
    const ExplainedWay& way = found.explanation.ways(0);
    const Objective objective(changed.job, changed.workers);
    const auto value = [&](const ExplainedWay& of, const JobSpec& job) {
      return objective.ValueOf(of.step_seconds(), RanksNeeded(job));
    };
    const double least = value(choice, choice_) * (1 - kSameMargin);
    const double other = value(way, found.jobs.front());
    if (other < least) return true;
    return objective.fewest() && other == value(choice, choice_) &&
           way.step_seconds() < choice.step_seconds() * (1 - kSameMargin);
  }

  const JobSpec& job_;
  const std::vector<WorkerDescription>& workers_;
  const MayGoOn& may_go_on_;
  const SearchProgress& progress_;
  KnownCosts known_;
  JobSpec choice_;
  WayFields fields_;
};

}  // namespace

absl::StatusOr<Explanation> ExplainChoice(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on, const SearchProgress& progress) {
  return Comparison(job, workers, may_go_on, progress).Run();
}

}  // namespace troupe
