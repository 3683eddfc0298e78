// Gradients are reduced in buckets while backward still runs: seen in the
// measured timeline, not promised by a comment.
#include <algorithm>

#include "gtest/gtest.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

TEST(Overlap, BucketsAreReducedWhileBackwardRuns) {
  JobSpec job = WithFewSteps(SmallJob());
  job.mutable_model()->set_num_hidden_layers(6);
  job.mutable_model()->set_hidden_size(240);  // work enough to overlap with
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  job.mutable_parallelism()->set_bucket_megabytes(1);
  const TrainingRun run = Train(job, {.ranks = 2});
  ASSERT_TRUE(run.status().ok()) << run.status();
  for (const std::vector<RankTimeline>& timelines : run.timelines) {
    ASSERT_EQ(timelines.size(), static_cast<size_t>(kFewSteps));
    int overlapped_steps = 0;
    for (const RankTimeline& timeline : timelines) {
      int64_t backward_end = 0;
      for (const Span& span : timeline.spans()) {
        if (span.kind() == Instruction::BACKWARD_WEIGHT) {
          backward_end = std::max(backward_end, span.end_ns());
        }
      }
      int reductions = 0;
      int early = 0;
      for (const Span& span : timeline.spans()) {
        if (span.kind() != Instruction::REDUCE_GRADS) continue;
        ++reductions;
        if (span.start_ns() < backward_end) ++early;
      }
      EXPECT_GE(reductions, 3);
      if (early >= 2) ++overlapped_steps;
    }
    // On a busy machine the lane may come late; not in every step.
    EXPECT_GT(overlapped_steps, 0);
  }
}

TEST(Overlap, EveryInstructionHasItsSpan) {
  const TrainingRun run = Train(SmallJob(), {});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const Program& program = run.plan.roles(0).programs(0);
  ASSERT_EQ(program.kind(), Program::TRAIN);
  for (const RankTimeline& timeline : run.timelines[0]) {
    ASSERT_EQ(timeline.spans_size(), program.instructions_size());
    std::vector<const Span*> spans(program.instructions_size());
    for (const Span& span : timeline.spans()) {
      spans.at(span.instruction()) = &span;
    }
    for (int i = 0; i < program.instructions_size(); ++i) {
      ASSERT_NE(spans[i], nullptr);
      EXPECT_LE(spans[i]->start_ns(), spans[i]->end_ns());
      EXPECT_EQ(spans[i]->kind(), program.instructions(i).kind());
      for (const int earlier : program.instructions(i).after()) {
        EXPECT_LE(spans[earlier]->end_ns(), spans[i]->start_ns());
      }
    }
  }
}

}  // namespace
}  // namespace troupe
