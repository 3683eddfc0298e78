// A cluster with something to see: one job that has ended, one that runs on
// a pipeline of four workers or more, with a loss curve, a plan, timelines and
// a checkpoint, one that waits; an idle worker and a lost one. For tests of
// what shows them, and for page_preview.
#ifndef TROUPE_TESTS_SCHEDULER_STATUS_MADE_UP_CLUSTER_H_
#define TROUPE_TESTS_SCHEDULER_STATUS_MADE_UP_CLUSTER_H_

#include <vector>

#include "scheduler/cluster/host.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {

class MadeUpCluster {
 public:
  // Hands all actions to `sink`, where there is one.
  explicit MadeUpCluster(ActionSink* sink = nullptr, int ranks = 4);

  JobId running() const { return running_; }
  // One more step of the running job.
  void Step();
  // One more job that waits.
  void Wait();

 private:
  // A plan such as the planner writes, without programs.
  struct Compiler final : public JobCompiler {
    absl::StatusOr<int> RanksNeeded(const JobSpec& job) const override;
    std::vector<JobSpec> Narrower(const JobSpec&, int) const override {
      return {};
    }
    absl::StatusOr<CompiledJob> Compile(
        const JobSpec& job, const std::vector<WorkerDescription>& workers,
        const MayGoOn& may_go_on) const override;
    absl::StatusOr<Explanation> Explain(const JobSpec&,
                                        const std::vector<WorkerDescription>&,
                                        const MayGoOn&) const override {
      return Explanation();
    }
    Plan PlanFor(const Plan& plan,
                 const std::vector<WorkerDescription>&) const override {
      return plan;
    }
    Plan PlanOfRank(const Plan& plan, int rank) const override;
    absl::StatusOr<TextPlan> PlanText(const JobSpec& job) const override;
    void ConnectText(const std::vector<WorkerDescription>&,
                     TextPlan&) const override {}
  };
  struct Sink final : public ActionSink {
    void Carry(const Actions& actions) override {
      if (other != nullptr) other->Carry(actions);
    }
    ActionSink* other = nullptr;
  };

  void Join(int number);
  JobId Submit(const char* name, int ranks, int64_t steps);
  void ReportStep(JobId job, int rank, int64_t step);
  void Send(int worker, const WorkerMessage& message);
  RankRef Ref(JobId job, int rank) const;

  const int ranks_;  // of the running job
  Compiler compiler_;
  Limits limits_;
  ManualClock clock_;
  Sink sink_;
  Cluster cluster_;

 public:
  ClusterHost host;

 private:
  std::vector<WorkerId> workers_;
  JobId running_;
  int64_t step_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_STATUS_MADE_UP_CLUSTER_H_
