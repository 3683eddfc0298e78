#include "scheduler/passes/expand_order.h"

#include "gtest/gtest.h"
#include "proto/plan/groups.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/synthetic_job.h"

namespace troupe {
namespace {

constexpr auto kF = ComputeStep::kForward;

TEST(ExpandOrder, SendsBehindTheProducerAndReceivesBeforeTheConsumer) {
  Draft draft = ExampleDraft(
      SyntheticJob({.pipeline = 2, .schedule = "1f1b", .micro_batches = 2}),
      "");
  const ComputeOrder order = {{{kF, 0, 0}, {kF, 0, 1}},
                              {{kF, 1, 0}, {kF, 1, 1}}};
  ExpandOrder(order, order, Program::VALIDATE, /*replica_kind=*/0, draft);
  EXPECT_EQ(ProgramWords(draft.plan, 0, Program::VALIDATE),
            "F u0 m0 | S u0 m0 p1 g1 | F u0 m1 | S u0 m1 p1 g1");
  EXPECT_EQ(ProgramWords(draft.plan, 1, Program::VALIDATE),
            "V u0 m0 p0 g1 | F u1 m0 | V u0 m1 p0 g1 | F u1 m1");
}

// Each pipeline has its own ranks: its peers are on it, and so is its group.
TEST(ExpandOrder, DataReplicasDoNotMix) {
  Draft draft = ExampleDraft(
      SyntheticJob(
          {.pipeline = 2, .data = 2, .schedule = "1f1b", .micro_batches = 1}),
      "");
  const ComputeOrder order = {{{kF, 0, 0}}, {{kF, 1, 0}}};
  ExpandOrder(order, order, Program::VALIDATE, /*replica_kind=*/0, draft);
  EXPECT_EQ(ProgramWords(draft.plan, 1, Program::VALIDATE),
            "F u0 m0 | S u0 m0 p1 g2");
  EXPECT_EQ(ProgramWords(draft.plan, 3, Program::VALIDATE),
            "V u0 m0 p0 g2 | F u1 m0");
  const Mesh& mesh = draft.plan.mesh();
  EXPECT_EQ(PeerRank(mesh, 1, 1), 3);
  EXPECT_EQ(MembersOf(mesh, draft.plan.groups(2), 1), (std::vector<int>{1, 3}));
}

}  // namespace
}  // namespace troupe
