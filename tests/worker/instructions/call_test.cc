#include "worker/instructions/call.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

void* Begin(const FlatMemory& flat) { return flat.At({0, 0}, 4); }

TEST(Call, FindsOperandsByTheirPart) {
  SmallRank rank(SmallJob(), {});
  const auto find = [&](Instruction::Kind kind, int unit) {
    for (const Instruction& instruction : rank.program().instructions()) {
      if (instruction.kind() == kind && instruction.unit() == unit) {
        return Call{rank.state(), rank.program(), instruction};
      }
    }
    return Call{rank.state(), rank.program(), rank.program().instructions(0)};
  };
  // A block's forward: from the unit before, no gradients.
  const UnitBuffers block = BuffersOf(find(Instruction::FORWARD, 1));
  EXPECT_EQ(block.input, rank.Memory<void>(Buffer::ACTIVATION, 0, 0));
  EXPECT_EQ(block.output, rank.Memory<void>(Buffer::ACTIVATION, 1, 0));
  EXPECT_EQ(Begin(block.parameters), rank.Memory<void>(Buffer::PARAMETERS, 1));
  EXPECT_EQ(block.batch, nullptr);
  EXPECT_EQ(block.scalars, nullptr);
  EXPECT_EQ(Begin(block.tied_parameters), nullptr);
  EXPECT_EQ(Begin(block.parameter_gradients), nullptr);
  // The head projects with the embedding's table.
  const UnitBuffers head = BuffersOf(find(Instruction::FORWARD, 3));
  EXPECT_EQ(Begin(head.tied_parameters),
            rank.Memory<void>(Buffer::PARAMETERS, 0));
  EXPECT_EQ(head.output, nullptr);
  EXPECT_NE(head.batch, nullptr);
  EXPECT_NE(head.scalars, nullptr);
  // The embedding has nothing before it.
  const UnitBuffers embedding = BuffersOf(find(Instruction::FORWARD, 0));
  EXPECT_EQ(embedding.input, nullptr);
  EXPECT_NE(embedding.output, nullptr);
}

// Of a block whose experts are on this rank only, the attention is gathered,
// and the experts are where they rest.
TEST(Call, FindsWhatIsDealtAndWhatIsNot) {
  JobSpec job = SmallJobOf("mixtral");
  job.mutable_parallelism()->set_expert(2);
  job.mutable_parallelism()->set_zero(3);
  SmallRank rank(job, {.ranks = 2, .rank = 1});
  const auto parameters_of = [&](Instruction::Kind kind) {
    for (const Instruction& instruction : rank.program().instructions()) {
      if (instruction.kind() != kind || instruction.unit() != 1) continue;
      return BuffersOf({rank.state(), rank.program(), instruction});
    }
    ADD_FAILURE();
    return UnitBuffers();
  };
  const std::vector<StretchAtRest> rests = rank.state().AtRest(1);
  ASSERT_EQ(rests.size(), 2u);
  const Range& dense = rests[0].stretch.all;
  const Range& experts = rests[1].stretch.all;
  ASSERT_TRUE(rests[0].stretch.dealt.has_value());
  ASSERT_FALSE(rests[1].stretch.dealt.has_value());
  EXPECT_EQ(rests[1].first, rests[0].rests.size());
  const FlatMemory weights = parameters_of(Instruction::FORWARD).parameters;
  EXPECT_EQ(weights.At(dense, 4),
            rank.Memory<char>(Buffer::UNSHARDED_PARAMETERS, 1));
  EXPECT_EQ(weights.At(experts, 4), rank.Memory<char>(Buffer::PARAMETERS, 1) +
                                        4 * rests[0].rests.size());
  EXPECT_EQ(weights.At({dense.begin, experts.end}, 4), nullptr);
  const FlatMemory gradients =
      parameters_of(Instruction::BACKWARD_WEIGHT).parameter_gradients;
  EXPECT_NE(gradients.At(dense, 4), nullptr);
  EXPECT_EQ(gradients.At(experts, 4),
            rank.Memory<char>(Buffer::PARAMETER_GRADIENTS, 1) +
                4 * rests[0].rests.size());
}

TEST(Call, SamplesAreNumberedInTheGlobalBatch) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(2);
  SmallRank rank(job, {.ranks = 2, .rank = 1});
  for (const Instruction& instruction : rank.program().instructions()) {
    if (instruction.kind() != Instruction::FORWARD) continue;
    const absl::StatusOr<MicroBatchContext> made =
        ContextOf({rank.state(), rank.program(), instruction});
    ASSERT_TRUE(made.ok()) << made.status();
    const MicroBatchContext& context = *made;
    EXPECT_EQ(context.first_sample, 4 + 2 * instruction.micro_batch());
    EXPECT_DOUBLE_EQ(context.gradient_scale, 1.0 / (8 * 17));
    EXPECT_TRUE(context.training);
  }
  // And among the windows that all ranks validate on.
  rank.state().step.training = false;
  const int64_t before =
      2 * rank.state().plan->derived().validation_micro_batches();
  for (const Instruction& instruction : rank.program().instructions()) {
    if (instruction.kind() != Instruction::FORWARD) continue;
    EXPECT_EQ(
        ContextOf({rank.state(), rank.program(), instruction})->first_sample,
        before + 2 * instruction.micro_batch());
  }
}

// Wherever they meet: between two exchanges they drift apart.
TEST(Call, IslandsWaitForEachOtherAsLongAsTheyMayDrift) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_global_batch_size(8);
  job.mutable_training()->set_micro_batch_size(2);
  job.mutable_parallelism()->set_islands(2);
  job.mutable_islands()->set_every(50);
  SmallRank rank(job, {.ranks = 4});
  const double step = rank.state().plan->prediction().step_seconds();
  ASSERT_GT(step, 0);
  const absl::Duration usual = rank.state().collective_timeout;
  const absl::Duration longer = usual + 2 * absl::Seconds(50 * step);
  int all = 0;
  int island = 0;
  for (const Instruction& reduce : rank.program().instructions()) {
    if (reduce.kind() != Instruction::REDUCE_SCALARS) continue;
    Instruction always = reduce;
    always.clear_when();
    const auto timeout_of = [&](const Instruction& instruction) {
      return CommOptionsOf({rank.state(), rank.program(), instruction}, "sums")
          .timeout;
    };
    EXPECT_EQ(timeout_of(reduce), reduce.has_when() ? longer : usual);
    EXPECT_EQ(timeout_of(always), reduce.has_when() ? longer : usual);
    ++(reduce.has_when() ? all : island);
  }
  EXPECT_EQ(all, 1);
  EXPECT_EQ(island, 1);
}

TEST(Call, WhatIsAheadBelongsToALaterStep) {
  SmallRank rank(SmallJob(), {});
  rank.state().step.step = 5;
  rank.state().step.samples_before = 32;
  Instruction ahead = rank.program().instructions(1);
  ASSERT_EQ(ahead.kind(), Instruction::FORWARD);
  ahead.set_ahead(2);
  const Call call = {rank.state(), rank.program(), ahead};
  EXPECT_EQ(StepOf(call), 7);
  EXPECT_EQ(ContextOf(call)->step, 7);
  EXPECT_EQ(SamplesBefore(call), 48);
}

TEST(Call, TheFirstToAddToGradientsFindsZeros) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(2);
  for (const bool tied : {true, false}) {
    job.mutable_model()->set_tie_word_embeddings(tied);
    SmallRank rank(job, {});
    std::vector<int> first;
    int calls = 0;
    for (const Instruction& instruction : rank.program().instructions()) {
      const bool zero = ContextOf({rank.state(), rank.program(), instruction})
                            ->gradients_are_zero;
      if (zero) first.push_back(instruction.unit());
      if (instruction.kind() != Instruction::BACKWARD_WEIGHT) {
        EXPECT_FALSE(zero);
        continue;
      }
      EXPECT_EQ(zero, calls++ < (tied ? 3 : 4));
    }
    EXPECT_EQ(calls, 4 * 4);
    // The head has added to the embedding's table already.
    EXPECT_EQ(first, tied ? std::vector<int>({3, 2, 1})
                          : std::vector<int>({3, 2, 1, 0}));
  }
}

}  // namespace
}  // namespace troupe
