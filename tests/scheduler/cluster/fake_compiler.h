// A compiler that knows what tests need, and the jobs and workers for it.
#ifndef TROUPE_TESTS_SCHEDULER_CLUSTER_FAKE_COMPILER_H_
#define TROUPE_TESTS_SCHEDULER_CLUSTER_FAKE_COMPILER_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/must_not_wait.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/worker_refusal.h"
#include "proto/protocol_version.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/worker_table.h"
#include "scheduler/passes/lanes.h"

namespace troupe {

// Ranks: parallelism.data, all in one group; of jobs that recover they hold the
// same, unless there is ZeRO. Refuses jobs named "wrong", and
// those that need more memory (hidden_size, in bytes, which the ranks of a job
// with `elastic` share) than a worker's device has. A step takes 0.1 s, which
// these share, too, or the model's first forward_us. It may be told to refuse
// numbers of ranks, as a newer build does with jobs of an older one. Of texts
// it refuses five ranks, and heads, where there are some, that tensor does not
// divide. Of a job that leaves ranks open it takes as many as there are, three
// at most.
class FakeCompiler final : public JobCompiler {
 public:
  absl::StatusOr<int> RanksNeeded(const JobSpec& job) const override {
    if (job.name() == "wrong") {
      return absl::InvalidArgumentError("name: this one is wrong");
    }
    return std::max(job.parallelism().data(), LeavesParallelismOpen(job) ? 1 : 0);
  }
  JobSpec Resolved(const JobSpec& job) const override {
    JobSpec resolved = job;
    resolved.set_evaluate(job.evaluate());
    return resolved;
  }
  // The same for all, but for jobs that may run on other numbers of ranks.
  std::string FingerprintOf(const JobSpec& job, int ranks) const {
    const std::string same = "0123456789abcdef";
    return job.has_elastic() ? absl::StrCat(same, "-", ranks) : same;
  }
  // Every number of replicas; of jobs named "whole" none.
  std::vector<JobSpec> Narrower(const JobSpec& job,
                                int workers) const override {
    std::vector<JobSpec> ways;
    if (!job.has_elastic() || job.name() == "whole") return ways;
    int data = std::min(workers, job.parallelism().data() - 1);
    for (; data >= std::max(1, job.elastic().min_workers()); --data) {
      ways.push_back(job);
      ways.back().mutable_parallelism()->set_data(data);
    }
    return ways;
  }
  absl::StatusOr<CompiledJob> Compile(
      const JobSpec& job, const std::vector<WorkerDescription>& workers,
      const MayGoOn& may_go_on) const override {
    CheckMayWait("a job is planned");
    if (absl::Status asked = Ask(may_go_on); !asked.ok()) return asked;
    if (LeavesParallelismOpen(job)) return CompileOpen(job, workers);
    const int ranks = job.parallelism().data();
    CHECK_EQ(ranks, static_cast<int>(workers.size()));
    if (refused_ranks.count(ranks) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("parallelism.data: no plan has ", ranks, " ranks"));
    }
    Plan plan;
    *plan.mutable_lanes() = AllLanes();
    *plan.mutable_job() = job;
    plan.set_fingerprint(FingerprintOf(job, ranks));
    const int shared_by = job.has_elastic() ? ranks : 1;
    plan.mutable_prediction()->set_step_seconds(
        job.model().forward_us().empty() ? 0.1 / shared_by
                                         : job.model().forward_us(0) * 1e-6);
    plan.mutable_prediction()->set_peak_flops_per_second(1e9);
    plan.mutable_derived()->set_tokens_per_step(100);
    plan.mutable_derived()->set_model_flops_per_token(1e5);
    Axis& data = *plan.mutable_mesh()->add_axes();
    data.set_name("data");
    data.set_size(ranks);
    plan.add_groups()->add_spans()->set_axis("data");
    Role& role = *plan.add_roles();
    if (job.has_recovery()) AddUnit(job.parallelism().zero() > 0, plan, role);
    Timeline predicted;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const TierBudget& budget : workers[rank].budgets()) {
        if (budget.bytes() * shared_by < job.model().hidden_size()) {
          return ForWorkers(absl::InvalidArgumentError(absl::StrCat(
              "model.hidden_size: rank ", rank, " needs more memory")));
        }
      }
      predicted.add_ranks()->set_rank(rank);
    }
    return MakeCompiledJob(std::move(plan), std::move(predicted));
  }
  absl::StatusOr<CompiledJob> CompileOpen(
      JobSpec job, std::vector<WorkerDescription> workers) const {
    workers.resize(std::min<size_t>(workers.size(), 3));
    job.mutable_parallelism()->clear_mode();
    job.mutable_parallelism()->set_data(static_cast<int>(workers.size()));
    absl::StatusOr<CompiledJob> compiled = Compile(job, workers, {});
    if (compiled.ok()) compiled->chosen = job;
    return compiled;
  }
  // One way, with as many bytes to send as there are workers.
  absl::StatusOr<Explanation> Explain(
      const JobSpec& job, const std::vector<WorkerDescription>& workers,
      const MayGoOn& may_go_on) const override {
    if (absl::Status asked = Ask(may_go_on); !asked.ok()) return asked;
    Explanation explanation;
    explanation.add_ways()->set_bytes_sent_per_step(workers.size());
    return explanation;
  }
  Plan PlanFor(const Plan& plan,
               const std::vector<WorkerDescription>& workers) const override {
    CheckMayWait("a plan is connected for other machines");
    if (before_plan_for) before_plan_for(workers);
    return plan;
  }
  Plan PlanOfRank(const Plan& plan, int rank) const override {
    CheckMayWait("a rank's part of a plan is made");
    if (before_plan_of_rank) before_plan_of_rank();
    Plan part = plan;
    part.set_rank(rank);
    return part;
  }
  // Weights are hidden_size bytes in all, shared evenly; 5 ranks are refused.
  absl::StatusOr<TextPlan> PlanText(const JobSpec& job) const override {
    TextPlan plan;
    int ranks = 1;
    for (const auto& [name, given] :
         {std::pair("pipeline", job.parallelism().pipeline()),
          std::pair("tensor", job.parallelism().tensor())}) {
      Axis& axis = *plan.mutable_mesh()->add_axes();
      axis.set_name(name);
      axis.set_size(std::max(given, 1));
      ranks *= axis.size();
    }
    if (ranks == 5) {
      return absl::InvalidArgumentError("parallelism.tensor: 5 is odd");
    }
    const int tensor = std::max(job.parallelism().tensor(), 1);
    if (job.model().num_attention_heads() % tensor != 0) {
      return absl::InvalidArgumentError("parallelism.tensor: too many");
    }
    plan.add_groups();
    for (int rank = 0; rank < ranks; ++rank) {
      plan.add_weight_bytes(job.model().hidden_size() / ranks);
    }
    return plan;
  }
  void ConnectText(const std::vector<WorkerDescription>& workers,
                   TextPlan& plan) const override {
    plan.mutable_groups(0)->add_carriers()->set_backend(
        absl::StrCat("of ", workers.size(), " from ", workers[0].name()));
  }

  std::set<int> refused_ranks;
  std::function<void()> before_plan_of_rank;  // called first, if set
  std::function<void(const std::vector<WorkerDescription>&)>
      before_plan_for;  // the same

 private:
  // That all ranks hold, alike or in slices.
  static void AddUnit(bool sliced, Plan& plan, Role& role) {
    plan.add_units()->add_parts()->set_elements(4);
    Placement::Part& part = *role.add_placements()->add_parts();
    if (!sliced) part.set_shared(0);
  }
};

inline JobSpec SpecOf(int ranks, int steps = 10) {
  JobSpec spec;
  spec.set_name(absl::StrCat("job-", ranks));
  spec.mutable_parallelism()->set_data(ranks);
  spec.mutable_training()->set_steps(steps);
  return spec;
}

inline constexpr int64_t kDeviceBytes = 1000;

inline Register RegisterOf(const std::string& name,
                           const std::string& host = "h") {
  Register request;
  request.set_protocol_version(kProtocolVersion);
  request.mutable_worker()->set_name(name);
  request.mutable_worker()->set_host(host);
  request.set_pid(1);
  TierBudget* budget = request.mutable_worker()->add_budgets();
  budget->set_tier(DEVICE);
  budget->set_bytes(kDeviceBytes);
  return request;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_CLUSTER_FAKE_COMPILER_H_
