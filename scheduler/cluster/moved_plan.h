// A plan on other machines than those for which it was made: what carries its
// groups between them is chosen when the plan is first asked for. That copies
// the plan, which takes as long as it is large, so nobody asks under the host's
// lock.
//
// Thread-safe: several sessions send parts of it at a time.
#ifndef TROUPE_SCHEDULER_CLUSTER_MOVED_PLAN_H_
#define TROUPE_SCHEDULER_CLUSTER_MOVED_PLAN_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/cluster/job_compiler.h"

namespace troupe {

class MovedPlan {
 public:
  // machines[r] carries out rank r.
  MovedPlan(std::shared_ptr<const Plan> plan,
            std::vector<WorkerDescription> machines)
      : plan_(std::move(plan)), machines_(std::move(machines)) {}

  const Plan& For(const JobCompiler& compiler) const {
    absl::call_once(once_, [&] {
      moved_ =
          std::make_unique<const Plan>(compiler.PlanFor(*plan_, machines_));
    });
    return *moved_;
  }

 private:
  const std::shared_ptr<const Plan> plan_;
  const std::vector<WorkerDescription> machines_;
  mutable absl::once_flag once_;
  mutable std::unique_ptr<const Plan> moved_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_MOVED_PLAN_H_
