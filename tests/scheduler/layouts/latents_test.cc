// Attention whose queries, keys and values are made apart: what is cut, what
// ranks exchange, and what they cannot share.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "scheduler/layouts/axis_rules.h"
#include "scheduler/layouts/cut_units.h"
#include "tests/scheduler/layouts/table_lines.h"

namespace troupe {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

UnitList UnitsOf(ModelSpec model) {
  model.set_num_hidden_layers(1);
  model.set_hidden_size(16);
  model.set_num_attention_heads(4);
  model.set_vocab_size(64);
  model.set_max_position_embeddings(8);
  model.set_intermediate_size(12);
  EXPECT_EQ(ResolveModel(model), absl::OkStatus());
  auto units =
      ModelUnits(model, {.sequences = 2, .sequence_length = 8, .dtype = F32});
  EXPECT_TRUE(units.ok()) << units.status();
  return *std::move(units);
}

// Keys of 6 + 2 columns, values of 5; no experts.
UnitList Deepseek() {
  ModelSpec model;
  model.set_architecture("deepseek_v3");
  model.set_q_lora_rank(12);
  model.set_kv_lora_rank(10);
  model.set_qk_nope_head_dim(6);
  model.set_qk_rope_head_dim(2);
  model.set_v_head_dim(5);
  model.set_first_k_dense_replace(1);
  return UnitsOf(std::move(model));
}

UnitList Olmoe() {
  ModelSpec model;
  model.set_architecture("olmoe");
  model.set_num_key_value_heads(2);
  model.set_num_experts(4);
  model.set_num_experts_per_tok(2);
  return UnitsOf(std::move(model));
}

ParallelismSpec Tensor(int ranks, bool sequence = false) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(ranks);
  parallelism.set_sequence_parallel(sequence);
  return parallelism;
}

// Up to the product behind attention.
std::vector<std::string> AttentionLines(const UnitList& units) {
  const UnitTable& table = units.tables[units.units[1].table()];
  std::vector<std::string> lines = Lines(table);
  for (int op = 0; op < table.ops_size(); ++op) {
    if (table.ops(op).kind() != Op::ATTENTION) continue;
    lines.resize(op + 2);
    break;
  }
  return lines;
}

// Every rank has the latents. Of the gradients of what its heads read of them
// it has a summand.
TEST(LatentLayout, HeadsAreCutAndLatentsAreNot) {
  UnitList units = Deepseek();
  CutUnits(RulesFor(Tensor(2)), units);
  const std::string heads = " Shard(2) on tensor";
  EXPECT_THAT(AttentionLines(units),
              ElementsAreArray(
                  {std::string("NORM [2, 8, 16] Replicate"),
                   std::string("LINEAR [2, 8, 24] Replicate"),
                   std::string("SPLIT [2, 8, 12] Replicate"),
                   std::string("NORM [2, 8, 12] Replicate"),
                   std::string("- / ALL_REDUCE [2, 8, 12] Replicate"),
                   "LINEAR [2, 8, 16]" + heads,
                   std::string("SPLIT [2, 8, 10] Replicate"),
                   std::string("NORM [2, 8, 10] Replicate"),
                   std::string("- / ALL_REDUCE [2, 8, 10] Replicate"),
                   "LINEAR [2, 8, 22]" + heads,
                   std::string("- / ALL_REDUCE [2, 8, 2] Replicate"),
                   "JOIN_HEADS [2, 8, 42]" + heads, "ROPE [2, 8, 42]" + heads,
                   "ATTENTION [2, 8, 10]" + heads,
                   std::string("LINEAR [2, 8, 16] Partial on tensor")}));
}

// With positions cut too, what is gathered is as narrow as a latent.
TEST(LatentLayout, LatentsAreGathered) {
  UnitList units = Deepseek();
  CutUnits(RulesFor(Tensor(2, /*sequence=*/true)), units);
  const std::string heads = " Shard(2) on tensor";
  const std::string rows = " Shard(1) on tensor";
  const std::string gather = "ALL_GATHER / REDUCE_SCATTER ";
  EXPECT_THAT(
      AttentionLines(units),
      ElementsAreArray(
          {"NORM [2, 4, 16]" + rows, "LINEAR [2, 4, 24]" + rows,
           "SPLIT [2, 4, 12]" + rows, "NORM [2, 4, 12]" + rows,
           gather + "[2, 8, 12] Replicate", "LINEAR [2, 8, 16]" + heads,
           "SPLIT [2, 4, 10]" + rows, "NORM [2, 4, 10]" + rows,
           gather + "[2, 8, 10] Replicate", "LINEAR [2, 8, 22]" + heads,
           gather + "[2, 8, 2] Replicate", "JOIN_HEADS [2, 8, 42]" + heads,
           "ROPE [2, 8, 42]" + heads, "ATTENTION [2, 8, 10]" + heads,
           std::string("LINEAR [2, 8, 16] Partial on tensor")}));
}

// The norm of all queries is over ranks: each adds its row sums.
TEST(LatentLayout, NormsOfCutHeadsExchangeMoments) {
  UnitList units = Olmoe();
  CutUnits(RulesFor(Tensor(2)), units);
  const std::string heads = " Shard(2) on tensor";
  const std::string sum = "ALL_REDUCE / ALL_REDUCE [2, 8, 2] Replicate";
  EXPECT_THAT(
      AttentionLines(units),
      ElementsAreArray(
          {std::string("NORM [2, 8, 16] Replicate"),
           std::string("- / ALL_REDUCE [2, 8, 16] Replicate"),
           "LINEAR [2, 8, 16]" + heads, "SPLIT [2, 8, 8]" + heads,
           "SPLIT [2, 8, 4]" + heads,
           std::string("ROW_SUMS [2, 8, 2] Partial on tensor"), sum,
           "SPLIT_NORM [2, 8, 8]" + heads,
           std::string("ROW_SUMS [2, 8, 2] Partial on tensor"), sum,
           "SPLIT_NORM [2, 8, 4]" + heads, "JOIN_HEADS [2, 8, 16]" + heads,
           "ROPE [2, 8, 16]" + heads, "ATTENTION [2, 8, 8]" + heads,
           std::string("LINEAR [2, 8, 16] Partial on tensor")}));
}

// Neighbours that have the same keys would add them to the row sums twice.
TEST(LatentLayout, NormedKeysAreNotShared) {
  EXPECT_TRUE(CheckCuts(Olmoe(), RulesFor(Tensor(2))).ok());
  EXPECT_THAT(std::string(CheckCuts(Olmoe(), RulesFor(Tensor(4))).message()),
              HasSubstr("parallelism.tensor: 4 ranks cannot share 2 "
                        "(model.num_key_value_heads) evenly; use 2"));
  ParallelismSpec ulysses;
  ulysses.set_context(4);
  EXPECT_TRUE(CheckCuts(Olmoe(), RulesFor(ulysses)).ok());
}

TEST(LatentLayout, RingsNeedValuesAsWideAsKeys) {
  for (const char* const method : {"ring", "usp"}) {
    ParallelismSpec parallelism;
    parallelism.set_context(4);
    parallelism.set_context_method(method);
    if (method == std::string("usp")) parallelism.set_ulysses_size(2);
    EXPECT_THAT(
        std::string(CheckCuts(Deepseek(), RulesFor(parallelism)).message()),
        HasSubstr("parallelism.context_method: rings that hand keys around"));
    EXPECT_EQ(CheckCuts(Olmoe(), RulesFor(parallelism)).message(), "");
  }
  ParallelismSpec rows;
  rows.set_context(4);
  rows.set_context_method("ring_self_attention");
  EXPECT_TRUE(CheckCuts(Deepseek(), RulesFor(rows)).ok());
}

TEST(LatentLayout, LatentsAreNotCutByColumns) {
  ParallelismSpec parallelism = Tensor(4);
  parallelism.set_tensor_method("2d");
  EXPECT_THAT(
      std::string(CheckCuts(Deepseek(), RulesFor(parallelism)).message()),
      HasSubstr("parallelism.tensor_method: latent attention is cut over ranks "
                "by heads (1d)"));
}

}  // namespace
}  // namespace troupe
