#include "scheduler/planner/planner.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/check_program.h"
#include "proto/plan/copies.h"
#include "proto/plan/mesh.h"
#include "scheduler/passes/lanes.h"
#include "scheduler/simulate/simulate.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

JobSpec FullJob(const JobSize& size) {
  JobSpec job = ExampleJob(size);
  job.mutable_checkpoint()->set_directory("checkpoints");
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(5);
  job.mutable_training()->set_validation_sequences(5);
  return job;
}

int CountOver(const Plan& plan, Instruction::Kind kind, int unit) {
  int count = 0;
  for (const Role& role : plan.roles()) {
    for (const Program& program : role.programs()) {
      for (const Instruction& instruction : program.instructions()) {
        count += instruction.kind() == kind && instruction.unit() == unit;
      }
    }
  }
  return count;
}

// Every instruction of the COMPUTE lane takes 1, everything else nothing.
int64_t UnitMakespan(const Plan& plan) {
  const Timeline timeline =
      Simulate(plan, Program::TRAIN, [](int, const Instruction& instruction) {
        return int64_t{instruction.lane() == LaneNamed("COMPUTE") ? 1 : 0};
      });
  int64_t end = 0;
  for (const RankTimeline& rank : timeline.ranks()) {
    for (const Span& span : rank.spans()) end = std::max(end, span.end_ns());
  }
  return end;
}

// M micro-batches of U forward, U - 1 backward-input and U backward-weight
// passes; then U norms, of each its slice, then U steps.
int64_t ClosedForm(const Plan& plan) {
  const int64_t units = plan.units_size();
  return plan.derived().micro_batches() * (3 * units - 1) + 2 * units;
}

TEST(CompilePlan, AllSmallSizes) {
  for (int data = 1; data <= 8; ++data) {
    for (int m = 1; m <= 12; ++m) {
      for (int blocks = 1; blocks <= 5; ++blocks) {
        SCOPED_TRACE(testing::Message() << "data " << data << ", micro-batches "
                                        << m << ", blocks " << blocks);
        const Plan plan = ExamplePlan(
            FullJob({.data = data, .micro_batches = m, .blocks = blocks}));
        ASSERT_TRUE(CheckPrograms(plan).ok());
        ASSERT_EQ(plan.roles_size(), 1);  // of all replicas
        for (int u = 0; u < plan.units_size(); ++u) {
          EXPECT_EQ(CountOver(plan, Instruction::GRAD_NORM, u), 1);
          EXPECT_EQ(CountOver(plan, Instruction::SNAPSHOT, u), 1);
          EXPECT_EQ(CountOver(plan, Instruction::STEP, u), 1);
        }
        EXPECT_EQ(UnitMakespan(plan), ClosedForm(plan));
      }
    }
  }
}

bool WritesInBackground(const Plan& plan) {
  return plan.job().checkpoint().background();
}

TEST(CompilePlan, WritesCheckpointsInTheBackgroundWhereThereIsRoom) {
  JobSpec job = FullJob({});
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  TierBudget& host = *workers[0].add_budgets();
  host.set_tier(HOST);
  host.set_bytes(int64_t{1} << 30);
  EXPECT_TRUE(WritesInBackground(*CompilePlan(job, workers)));
  host.set_bytes(1 << 10);
  EXPECT_FALSE(WritesInBackground(*CompilePlan(job, workers)));
  job.mutable_checkpoint()->set_background(true);
  EXPECT_THAT(std::string(CompilePlan(job, workers).status().message()),
              ::testing::HasSubstr("host memory"));
  host.set_bytes(int64_t{1} << 30);
  job.mutable_checkpoint()->set_background(false);
  EXPECT_FALSE(WritesInBackground(*CompilePlan(job, workers)));
}

// Gradients travel while backward goes on: every bucket but the last.
TEST(CompilePlan, ReductionsOverlapBackward) {
  const Plan plan =
      ExamplePlan(ExampleJob({.data = 4, .micro_batches = 2, .blocks = 5}));
  const Timeline timeline =
      Simulate(plan, Program::TRAIN,
               [](int, const Instruction&) { return int64_t{10}; });
  for (const RankTimeline& rank : timeline.ranks()) {
    std::vector<Span> reductions;
    for (const Span& span : rank.spans()) {
      if (span.kind() == Instruction::REDUCE_GRADS) reductions.push_back(span);
    }
    ASSERT_EQ(reductions.size(), 6);
    for (size_t i = 0; i + 1 < reductions.size(); ++i) {
      const bool overlaps = std::any_of(
          rank.spans().begin(), rank.spans().end(), [&](const Span& span) {
            return (span.kind() == Instruction::BACKWARD_INPUT ||
                    span.kind() == Instruction::BACKWARD_WEIGHT) &&
                   span.start_ns() < reductions[i].end_ns() &&
                   span.end_ns() > reductions[i].start_ns();
          });
      EXPECT_TRUE(overlaps) << "bucket " << i << " of rank " << rank.rank();
    }
  }
}

TEST(CompilePlan, IsDeterministic) {
  const JobSpec job = FullJob({.data = 3, .micro_batches = 2});
  EXPECT_EQ(ExamplePlan(job).SerializeAsString(),
            ExamplePlan(job).SerializeAsString());
}

TEST(CompilePlan, FingerprintFollowsThePlanNotTheMachine) {
  const JobSpec job = FullJob({.data = 2});
  const Plan plan = ExamplePlan(job);
  EXPECT_EQ(plan.fingerprint().size(), 16);
  EXPECT_EQ(PlanFingerprint(plan), plan.fingerprint());
  std::vector<WorkerDescription> slower = ExampleWorkers(2);
  slower[1].mutable_calibration()->set_memory_bytes_per_second(1);
  const Plan elsewhere = *CompilePlan(job, slower);
  EXPECT_EQ(elsewhere.fingerprint(), plan.fingerprint());
  EXPECT_GT(elsewhere.prediction().step_seconds(),
            plan.prediction().step_seconds());
  JobSpec other = job;
  other.mutable_training()->set_seed(1);
  EXPECT_NE(ExamplePlan(other).fingerprint(), plan.fingerprint());
}

TEST(CompilePlan, SaysHowManyWorkersAreMissing) {
  const absl::Status status =
      CompilePlan(ExampleJob({.data = 4}), ExampleWorkers(3)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("parallelism.data: 4 wants 4 workers, there are 3"));
}

// In fields that a job has: axes are not fields.
TEST(CompilePlan, SaysWhichFieldsWantThem) {
  const auto wants = [](const ParallelismSpec& parallelism) {
    JobSpec job = ExampleJob({.micro_batch_size = 4});
    job.mutable_parallelism()->MergeFrom(parallelism);
    return std::string(CompilePlan(job, ExampleWorkers(3)).status().message());
  };
  ParallelismSpec cube;
  cube.set_tensor(8);
  cube.set_tensor_method("3d");
  EXPECT_THAT(wants(cube),
              StartsWith("parallelism.tensor: 8 wants 8 workers, there are 3"));
  ParallelismSpec rings;
  rings.set_context(4);
  rings.set_context_method("usp");
  rings.set_ulysses_size(2);
  rings.set_tensor(2);
  EXPECT_THAT(wants(rings),
              StartsWith("parallelism.context: 4 x parallelism.tensor 2 wants "
                         "8 workers, there are 3"));
}

TEST(CompilePlan, IgnoresWorkersPastTheLastRank) {
  const Plan plan = *CompilePlan(ExampleJob({.data = 2}), ExampleWorkers(5));
  EXPECT_EQ(MeshSize(plan.mesh()), 2);
  EXPECT_EQ(plan.prediction().ranks_size(), 2);
}

TEST(RanksNeeded, OfJobsAsWritten) {
  EXPECT_EQ(RanksNeeded(JobSpec()), 1);
  EXPECT_EQ(RanksNeeded(ExampleJob({.data = 6})), 6);
  JobSpec wrong = ExampleJob({});
  wrong.mutable_parallelism()->set_data(-2);
  EXPECT_EQ(RanksNeeded(wrong), 1);
  wrong.mutable_parallelism()->set_context(4);
  for (const int size : {0, -1}) {
    wrong.mutable_parallelism()->set_ulysses_size(size);
    EXPECT_EQ(RanksNeeded(wrong), 4);
  }
}

// Replicas that are neighbours, of a pipeline on these hosts.
Plan CopiesOnHosts(const std::vector<std::string>& hosts) {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_recovery();
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i].set_host(hosts[i]);
    workers[i].clear_budgets();
  }
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  CHECK_OK(plan.status());
  return *plan;
}

TEST(Planner, CopiesAreMirroredWhereAHostHoldsAllOfAState) {
  const auto purpose = [](const Plan& plan) {
    return plan.groups(CopiesGroup(plan)).purpose();
  };
  const Plan one = CopiesOnHosts({"a", "a", "a", "a"});
  EXPECT_FALSE(KeepsMirrors(one));
  EXPECT_EQ(purpose(one),
            "go on after the loss of any one worker, but not of their only "
            "host");
  const Plan apart = CopiesOnHosts({"a", "b", "a", "b"});
  EXPECT_FALSE(KeepsMirrors(apart));
  EXPECT_EQ(purpose(apart), "go on after the loss of any one worker or host");
  const Plan together = CopiesOnHosts({"a", "a", "b", "b"});
  EXPECT_TRUE(KeepsMirrors(together));
  EXPECT_EQ(purpose(together), purpose(apart));
}

// Six ranks on two hosts: half of three stages further on is the same host for
// one rank in three, and the opposite rank never is.
TEST(Planner, CopiesGoToOppositeRanksWhereThatOutlivesAHostMore) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 6});
  job.mutable_parallelism()->set_pipeline(3);
  job.mutable_parallelism()->set_zero(1);
  job.mutable_recovery();
  const auto on = [&](const std::vector<std::string>& hosts) {
    std::vector<WorkerDescription> workers =
        ExampleWorkers(static_cast<int>(hosts.size()));
    for (size_t i = 0; i < workers.size(); ++i) {
      workers[i].set_host(hosts[i]);
      workers[i].clear_budgets();
    }
    const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
    CHECK_OK(plan.status());
    return *plan;
  };
  const std::vector<std::string> two = {"a", "a", "a", "b", "b", "b"};
  const Plan plan = on(two);
  const Group& group = plan.groups(CopiesGroup(plan));
  EXPECT_EQ(group.purpose(), "go on after the loss of any one worker or host");
  EXPECT_EQ(group.name(), kOppositeCopiesGroup);
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_NE(two[MirrorOf(plan, rank)], two[rank]) << rank;
    // Any rank's part of the plan says the same, and other workers in its
    // places change nothing.
    EXPECT_EQ(MirrorOf(AssignmentPlan(plan, rank), rank), MirrorOf(plan, rank));
  }
  // Where all are outlived half the way around, copies go there.
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{"a", "a", "b", "b", "c", "c"},
        std::vector<std::string>(6, "a")}) {
    const Plan other = on(hosts);
    EXPECT_EQ(other.groups(CopiesGroup(other)).name(), kCopiesGroup);
    EXPECT_EQ(MirrorOf(other, 0), 2);
  }
}

TEST(AssignmentPlan, HasWhatConcernsItsRankAndAllElse) {
  const Plan plan = ExamplePlan(FullJob({.data = 3}));
  const Plan assignment = AssignmentPlan(plan, 1);
  EXPECT_EQ(assignment.rank(), 1);
  ASSERT_EQ(assignment.roles_size(), 1);
  EXPECT_EQ(assignment.roles(0).SerializeAsString(),
            plan.roles(0).SerializeAsString());
  ASSERT_EQ(assignment.prediction().ranks_size(), 1);
  EXPECT_EQ(assignment.prediction().ranks(0).rank(), 1);
  const auto rest = [](Plan p) {
    p.clear_roles();
    p.clear_rank();
    p.mutable_prediction()->clear_ranks();
    return p.SerializeAsString();
  };
  EXPECT_EQ(rest(assignment), rest(plan));
}

}  // namespace
}  // namespace troupe
