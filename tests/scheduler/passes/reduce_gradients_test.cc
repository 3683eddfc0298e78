#include "scheduler/passes/reduce_gradients.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "scheduler/passes/lanes.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// The program of rank 1, from the last micro-batch's backward on.
std::string Tail(double bucket_megabytes, bool tied) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2, .blocks = 3});
  job.mutable_parallelism()->set_bucket_megabytes(bucket_megabytes);
  job.mutable_model()->set_tie_word_embeddings(tied);
  const Draft draft = ExampleDraft(job, "reduce gradients");
  const std::string words = ProgramWords(draft.plan, 1, Program::TRAIN);
  return words.substr(words.find("I u4 m1"));
}

TEST(ReduceGradients, EachUnitBehindItsLastBackward) {
  EXPECT_EQ(Tail(1e-6, /*tied=*/false),
            "I u4 m1 | W u4 m1 | R u4 g0 | I u3 m1 | W u3 m1 | R u3 g0 | "
            "I u2 m1 | W u2 m1 | R u2 g0 | I u1 m1 | W u1 m1 | R u1 g0 | "
            "W u0 m1 | R u0 g0");
}

TEST(ReduceGradients, NeighboursShareABucketUpToItsSize) {
  // Blocks have 13.3 KiB; the tied head has a norm's 256 bytes.
  EXPECT_EQ(Tail(0.027, /*tied=*/true),
            "I u4 m1 | W u4 m1 | I u3 m1 | W u3 m1 | I u2 m1 | W u2 m1 | "
            "R u2-4 g0 | I u1 m1 | W u1 m1 | W u0 m1 | R u0-1 g0");
  EXPECT_EQ(Tail(25, /*tied=*/true),
            "I u4 m1 | W u4 m1 | I u3 m1 | W u3 m1 | I u2 m1 | W u2 m1 | "
            "I u1 m1 | W u1 m1 | W u0 m1 | R u0-4 g0");
}

TEST(ReduceGradients, OneReplicaHasNothingToSum) {
  const Draft draft = ExampleDraft(ExampleJob({}), "reduce gradients");
  EXPECT_EQ(ProgramWords(draft.plan, 0, Program::TRAIN).find('R'),
            std::string::npos);
}

// Of two ranks that share a tied table, the last one has added to it before it
// hands on all gradients that the first one waits for. Where the sum's moves
// between tiers would hold up theirs, it stands behind all of them.
TEST(ReduceGradients, ASumOverStagesHoldsUpNoMoves) {
  const auto behind_the_sum = [](const char* gradients, const char* optimizer) {
    JobSpec job = ExampleJob({.micro_batches = 4, .blocks = 6});
    job.mutable_model()->set_tie_word_embeddings(true);
    job.mutable_parallelism()->set_pipeline(2);
    job.mutable_memory()->set_gradients(gradients);
    job.mutable_memory()->set_optimizer(optimizer);
    const Draft draft = ExampleDraft(job, "reduce gradients");
    const std::string words = ProgramWords(draft.plan, 1, Program::TRAIN);
    return words.substr(words.find("R u0") + 4);
  };
  EXPECT_NE(behind_the_sum("device", "device"), " g0");
  EXPECT_EQ(behind_the_sum("host", "device"), " g0");
  EXPECT_EQ(behind_the_sum("device", "host"), " g0");
}

// Where a tied gradient gets its last addend late, its bucket waits for it.
TEST(ReduceGradients, ABucketWaitsForTiedGradients) {
  Draft draft = ExampleDraft(
      ExampleJob({.data = 2, .micro_batches = 1, .blocks = 1}), "");
  draft.compute_order = {{{ComputeStep::kForward, 0, 0},
                          {ComputeStep::kBackwardWeight, 1, 0},
                          {ComputeStep::kBackwardWeight, 0, 0},
                          {ComputeStep::kBackwardWeight, 2, 0}}};
  draft.stage_units = {{0}, {1}, {2}};
  // Stages out of order: the head's backward comes last.
  draft.plan.mutable_job()->mutable_parallelism()->set_bucket_megabytes(1e-6);
  for (Role& role : *draft.plan.mutable_roles()) {
    Program& program = *role.add_programs();
    program.set_kind(Program::TRAIN);
    for (const int u : {1, 0, 2}) {
      Instruction& weight = *program.add_instructions();
      weight.set_kind(Instruction::BACKWARD_WEIGHT);
      weight.set_unit(u);
      weight.set_lane(LaneNamed("COMPUTE"));
      weight.set_micro_batch(0);
    }
  }
  ReduceGradients(draft);
  EXPECT_EQ(ProgramWords(draft.plan, 0, Program::TRAIN),
            "W u1 m0 | R u1 g0 | W u0 m0 | W u2 m0 | R u2 g0 | R u0 g0");
}

}  // namespace
}  // namespace troupe
