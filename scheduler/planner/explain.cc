#include "scheduler/planner/explain.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/base/status.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/advise.h"
#include "scheduler/planner/check_memory.h"
#include "scheduler/planner/planned_way.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/remedies.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/ways.h"

namespace troupe {
namespace {

// As FindRemedies wants it: what carries groups is chosen there.
Plan WithoutCarriers(Plan plan) {
  for (Group& group : *plan.mutable_groups()) group.clear_carriers();
  return plan;
}

class Explainer {
 public:
  Explainer(const JobSpec& resolved, std::vector<WorkerDescription> workers,
            const MayGoOn& may_go_on, int64_t instructions_max)
      : resolved_(resolved),
        workers_(std::move(workers)),
        may_go_on_(may_go_on),
        instructions_max_(instructions_max) {}

  absl::StatusOr<Explanation> Run(const std::vector<JobSpec>& ways) {
    for (const JobSpec& way : ways) {
      if (static_cast<int>(tried_.size()) == kWaysMax) {
        explanation_.set_left_out(explanation_.left_out() + 1);
        continue;
      }
      RETURN_IF_ERROR(Try(way, &way == &ways.front()));
    }
    if (tried_.empty()) return refusal_of_job_;
    std::stable_sort(tried_.begin(), tried_.end(),
                     [](const Tried& a, const Tried& b) {
                       if (a.way.fits() != b.way.fits()) return a.way.fits();
                       return a.way.step_seconds() < b.way.step_seconds();
                     });
    for (const Tried& tried : tried_) *explanation_.add_ways() = tried.way;
    RETURN_IF_ERROR(Advise());
    return std::move(explanation_);
  }

 private:
  struct Tried {
    ExplainedWay way;
    JobSpec job;
  };

  absl::Status Try(const JobSpec& job, bool is_job) {
    PlanWayOptions options = {.may_go_on = may_go_on_};
    if (is_job) {
      options.gather_room = GatherRoom::kFewest;
    } else {
      options.instructions_max = instructions_max_;
    }
    const absl::StatusOr<PlannedWay> planned = PlanWay(job, workers_, options);
    if (!planned.ok() && !absl::IsInvalidArgument(planned.status())) {
      return planned.status();
    }
    WayFields fields = FieldsOfWay(planned.ok() ? planned->plan.job()
                                   : is_job     ? resolved_
                                                : job,
                                   resolved_);
    fields.set_is_job(is_job);
    if (!planned.ok()) {
      if (is_job) refusal_of_job_ = planned.status();
      RefusedWay& refused = *explanation_.add_refused();
      *refused.mutable_fields() = std::move(fields);
      refused.set_reason(std::string(planned.status().message()));
      return absl::OkStatus();
    }
    Tried& tried = tried_.emplace_back();
    tried.job = planned->job;
    *tried.way.mutable_fields() = std::move(fields);
    DescribeWay(*planned, workers_, tried.way);
    RETURN_IF_ERROR(Ask(may_go_on_));
    SetFasterLinks(*planned, workers_, tried.way);
    return absl::OkStatus();
  }

  absl::Status Advise() {
    int asked = 0;
    for (size_t i = 0; i < tried_.size(); ++i) {
      ExplainedWay& way = *explanation_.mutable_ways(static_cast<int>(i));
      if (way.fits()) {
        way.set_advice(AdviceOf(explanation_, static_cast<int>(i)));
        continue;
      }
      const bool asks = asked < kRemediedMax || way.fields().is_job();
      asked += asks;
      if (!asks) {
        way.set_advice(LackText(way));
        continue;
      }
      const absl::StatusOr<Remedies> remedies = RemediesOf(tried_[i].job);
      // The job itself may be too long to be compared with others.
      if (absl::IsInvalidArgument(remedies.status())) {
        way.set_advice(LackText(way));
        continue;
      }
      if (!remedies.ok()) return remedies.status();
      way.set_advice(
          remedies->fitting.empty()
              ? NoRemedyText(way)
              : RemedyText(explanation_, static_cast<int>(i),
                           {.change = remedies->fitting.front().Text(),
                            .longer = remedies->fitting.front().longer}));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Remedies> RemediesOf(const JobSpec& job) const {
    const BuildPlan build = [this](const JobSpec& other) {
      absl::StatusOr<Plan> plan =
          TryPlan(other, workers_, GatherRoom::kAll, may_go_on_);
      return plan.ok() ? WithoutCarriers(*std::move(plan)) : std::move(plan);
    };
    ASSIGN_OR_RETURN(const Plan plan, build(job));
    return FindRemedies(plan, workers_, build,
                        {.may_change =
                             [](const std::string& field) {
                               return field == kRecomputeField ||
                                      field == kZeroField;
                             },
                         .changes_max = 2});
  }

  const JobSpec& resolved_;
  const std::vector<WorkerDescription> workers_;
  const MayGoOn& may_go_on_;
  const int64_t instructions_max_;
  absl::Status refusal_of_job_;
  std::vector<Tried> tried_;
  Explanation explanation_;
};

}  // namespace

absl::StatusOr<Explanation> Explain(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on, int64_t instructions_max) {
  ASSIGN_OR_RETURN(const JobSpec resolved, ResolveJob(job));
  const size_t ranks = RanksNeeded(resolved);
  // Too few are refused with the first way.
  std::vector<WorkerDescription> used(
      workers.begin(), workers.begin() + std::min(ranks, workers.size()));
  return Explainer(resolved, std::move(used), may_go_on, instructions_max)
      .Run(WaysToShare(job));
}

}  // namespace troupe
