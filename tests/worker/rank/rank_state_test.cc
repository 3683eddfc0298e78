#include "worker/rank/rank_state.h"

#include <memory>

#include "gtest/gtest.h"
#include "proto/base/cores.h"
#include "tests/equivalence/small_job.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

TEST(RankState, KnowsItsPlaceAndItsUnits) {
  SmallRank rank(SmallJob(), {.ranks = 4, .rank = 3});
  RankState& state = rank.state();
  EXPECT_EQ(state.rank(), 3);
  EXPECT_EQ(state.data_index(), 3);
  EXPECT_EQ(state.data_size(), 4);
  EXPECT_EQ(state.HeldUnits(), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(state.StateOfUnit(2).front().parameters.memory(),
            rank.Memory<char>(Buffer::PARAMETERS, 2));
  EXPECT_EQ(state.StateOfUnit(2).front().optimizer_state.memory(),
            rank.Memory<char>(Buffer::OPTIMIZER_STATE, 2));
  EXPECT_EQ(state.units.size(), 4u);
}

TEST(RankState, OfAPipelineHoldsItsStageAndWhatThatIsTiedTo) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(2);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(2);
  for (const int units : {2, 2}) parallelism.add_stages(units);
  // Two replicas: ranks 0 and 1 have the first stage, 2 and 3 the second.
  SmallRank first(job, {.ranks = 4, .rank = 1});
  EXPECT_EQ(first.state().HeldUnits(), (std::vector<int>{0, 1}));
  EXPECT_EQ(first.state().data_index(), 1);
  EXPECT_EQ(first.state().data_size(), 2);
  SmallRank last(job, {.ranks = 4, .rank = 2});
  EXPECT_EQ(last.state().HeldUnits(), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(last.state().data_index(), 0);
  EXPECT_TRUE(last.state().data.has_value());  // for the targets
}

TEST(RankState, TheHostBesideADeviceHasTheThreadsThatItIsGiven) {
  const auto split = [] {
    return std::make_unique<SplitMemoryDevice>(CpuDeviceOptions{.threads = 1});
  };
  SmallRank beside(SmallJob(), {.new_device = split, .host_threads = 3});
  EXPECT_EQ(beside.state().host.threads(), 3);
  SmallRank by_cores(SmallJob(), {.new_device = split});
  EXPECT_EQ(by_cores.state().host.threads(), UsableCoreCount());
  // What computes on the host already is all that does.
  SmallRank on_host(SmallJob(), {.host_threads = 3});
  EXPECT_EQ(&on_host.state().host, &on_host.state().device);
}

TEST(RankState, DataIsOpenedWhereBatchesAreLoaded) {
  const SmallRankOptions options = {.change = [](Plan& plan) {
    for (Program& program : *plan.mutable_roles(0)->mutable_programs()) {
      for (Instruction& instruction : *program.mutable_instructions()) {
        if (instruction.kind() != Instruction::LOAD_BATCH) continue;
        instruction.set_kind(Instruction::RECV);
      }
    }
  }};
  SmallRank with_data(SmallJob(), {});
  EXPECT_EQ(with_data.state().tokenizer(), "bytes");
  JobSpec job = SmallJob();
  job.mutable_data()->set_tokens("/no/such/file");
  SmallRank without(job, options);
  EXPECT_FALSE(without.state().data.has_value());
  EXPECT_EQ(without.state().tokenizer(), "");
}

TEST(RankState, OfBf16TheWeightsAreTheMasterOnes) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_precision("bf16");
  SmallRank rank(job, {});
  const UnitFlatBuffers memory = rank.state().StateOfUnit(2).front();
  EXPECT_EQ(memory.parameters.memory(),
            rank.Memory<char>(Buffer::MASTER_WEIGHTS, 2));
  EXPECT_EQ(memory.rounded_parameters.memory(),
            rank.Memory<char>(Buffer::PARAMETERS, 2));
  SmallRank f32(SmallJob(), {});
  EXPECT_FALSE(f32.state().StateOfUnit(2).front().rounded_parameters);
}

TEST(RankState, TokensMustFitTheVocabulary) {
  JobSpec job = SmallJob();
  SmallRank rank(job, {});
  Plan plan = *rank.state().plan;
  plan.mutable_job()->mutable_model()->set_vocab_size(60);
  const absl::Status status =
      RankState::Create(std::make_shared<Plan>(plan), rank.state().device,
                        rank.arenas(), rank.disk())
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("model.vocab_size: 60"),
            absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace troupe
