// Layers whose experts are cut over ranks: what stands where, and which rank
// has which weights.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/layouts/cut_units.h"
#include "scheduler/layouts/unit_rules.h"
#include "tests/scheduler/layouts/table_lines.h"

namespace troupe {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Width 16, 2 heads, 4 experts of 12 columns, of which a token has 2; together
// the ranks have micro-batches of 4 x 8 tokens.
UnitList Units(const std::string& architecture = "mixtral") {
  ModelSpec model;
  model.set_architecture(architecture);
  model.set_num_hidden_layers(1);
  model.set_hidden_size(16);
  model.set_num_attention_heads(2);
  model.set_vocab_size(64);
  model.set_max_position_embeddings(8);
  model.set_intermediate_size(12);
  if (architecture == "mixtral") model.set_num_experts(4);
  EXPECT_TRUE(ResolveModel(model).ok());
  auto units =
      ModelUnits(model, {.sequences = 4, .sequence_length = 8, .dtype = F32});
  EXPECT_TRUE(units.ok()) << units.status();
  return *std::move(units);
}

ParallelismSpec Experts(int ranks, double slack, int tensor = 1) {
  ParallelismSpec parallelism;
  parallelism.set_data(ranks);
  parallelism.set_expert(ranks);
  parallelism.set_expert_slack(slack);
  parallelism.set_tensor(tensor);
  return parallelism;
}

const UnitTable& BlockOf(const UnitList& units) {
  return units.tables[units.units[1].table()];
}

// From the router on.
std::vector<std::string> ExpertLines(const UnitTable& table) {
  std::vector<std::string> lines = Lines(table);
  for (int op = 0; op < table.ops_size(); ++op) {
    if (table.ops(op).kind() != Op::ROUTE) continue;
    lines.erase(lines.begin(), lines.begin() + op);
    break;
  }
  return lines;
}

TEST(ExpertsLayout, RowsGoToExpertsAndBack) {
  UnitList units = Units();
  CutUnits(RulesFor(Experts(2, 2)), units);
  const std::string rows = " Shard(0) on expert";
  const std::vector<std::string> wanted = {
      "ROUTE [2, 8, 2]" + rows,
      "ROUTER_LOSS",
      "DISPATCH [2, 8, 2, 16]" + rows,
      "ALL_GATHER / - [2, 5] Replicate",
      "ALL_TO_ALL / ALL_TO_ALL [2, 8, 4, 16]" + rows,
      "ALL_TO_ALL / ALL_TO_ALL [2, 8, 4]" + rows,
      "REGROUP [2, 8, 4, 16]" + rows,
      "GROUPED_LINEAR [2, 8, 4, 24]" + rows,
      "SWIGLU [2, 8, 4, 12]" + rows,
      "GROUPED_LINEAR [2, 8, 4, 16]" + rows,
      "UNGROUP [2, 8, 4, 16]" + rows,
      "ALL_TO_ALL / ALL_TO_ALL [2, 8, 2, 16]" + rows,
      "COMBINE [2, 8, 16]" + rows,
      "ADD [2, 8, 16]" + rows};
  EXPECT_THAT(ExpertLines(BlockOf(units)), ElementsAreArray(wanted));
}

TEST(ExpertsLayout, RoundsHaveRoomForAnyRouting) {
  UnitList units = Units();
  CutUnits(RulesFor(Experts(4, 1.5)), units);
  const std::string rows = " Shard(0) on expert";
  std::vector<std::string> wanted = {"ROUTE [1, 8, 2]" + rows, "ROUTER_LOSS",
                                     "DISPATCH [1, 8, 2, 16]" + rows,
                                     "ALL_GATHER / - [4, 5] Replicate"};
  // Three choices' rows at once; all that there are for one rank are eight.
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::string> of_round = {
        "ALL_TO_ALL / ALL_TO_ALL [1, 8, 3, 16]" + rows,
        "ALL_TO_ALL / ALL_TO_ALL [1, 8, 3]" + rows,
        "REGROUP [1, 8, 3, 16]" + rows,
        "GROUPED_LINEAR [1, 8, 3, 24]" + rows,
        "SWIGLU [1, 8, 3, 12]" + rows,
        "GROUPED_LINEAR [1, 8, 3, 16]" + rows,
        "UNGROUP [1, 8, 3, 16]" + rows,
        "ALL_TO_ALL / ALL_TO_ALL [1, 8, 2, 16]" + rows};
    wanted.insert(wanted.end(), of_round.begin(), of_round.end());
  }
  wanted.push_back("COMBINE [1, 8, 16]" + rows);
  wanted.push_back("ADD [1, 8, 16]" + rows);
  EXPECT_THAT(ExpertLines(BlockOf(units)), ElementsAreArray(wanted));
}

// Experts are whole where they are, and theirs is the whole gradient. All else
// is on all ranks, which have summands.
TEST(ExpertsLayout, ExpertsArePartsOfTheirOwn) {
  UnitList units = Units();
  CutUnits(RulesFor(Experts(2, 2, /*tensor=*/2)), units);
  for (const Parameter& parameter : units.units[1].parameters()) {
    const bool of_experts = parameter.dims_size() == 3;
    const auto* const cut = CutBy(parameter.dims(0).sections(0), "expert");
    EXPECT_EQ(cut != nullptr, of_experts) << parameter.name();
  }
  int of_experts = 0;
  for (const Unit::Part& part : units.units[1].parts()) {
    bool is_shared = false;
    for (const Unit::Part::Share& share : part.shares()) {
      if (share.axis() != "expert") continue;
      is_shared = true;
      EXPECT_EQ(share.copies(), 2);
      EXPECT_TRUE(share.summed());
    }
    of_experts += !is_shared;
  }
  EXPECT_EQ(of_experts, 1);
}

// What tensor ranks leave as summands stays so on the way back.
TEST(ExpertsLayout, ColumnsWithinExpertsMayBeCutToo) {
  UnitList units = Units();
  CutUnits(RulesFor(Experts(2, 2, /*tensor=*/2)), units);
  const std::vector<std::string> lines = ExpertLines(BlockOf(units));
  const std::string rows = " Shard(0) on expert";
  EXPECT_THAT(lines, testing::Contains("GROUPED_LINEAR [2, 8, 4, 12]" + rows +
                                       ", Shard(3) on tensor"));
  EXPECT_THAT(lines, testing::Contains("ALL_TO_ALL / ALL_TO_ALL [2, 8, 2, 16]" +
                                       rows + ", Partial on tensor"));
}

// Between norms they have different rows: these go to experts as they are.
TEST(ExpertsLayout, TensorRanksMayHaveWholeExperts) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(2);
  parallelism.set_sequence_parallel(true);
  parallelism.set_expert(2);
  parallelism.set_expert_slack(2);
  UnitList units = Units();
  ASSERT_TRUE(CheckCuts(units, RulesFor(parallelism)).ok());
  CutUnits(RulesFor(parallelism), units);
  const std::vector<std::string> lines = ExpertLines(BlockOf(units));
  const std::string rows = " Shard(1) on tensor";
  for (const char* const line :
       {"DISPATCH [4, 4, 2, 16]", "REGROUP [4, 4, 4, 16]",
        "GROUPED_LINEAR [4, 4, 4, 24]", "SWIGLU [4, 4, 4, 12]",
        "COMBINE [4, 4, 16]"}) {
    EXPECT_THAT(lines, testing::Contains(line + rows));
  }
  EXPECT_THAT(lines, testing::Contains("ALL_GATHER / - [2, 5] Replicate"));
}

// As the ranks of a group are counted, whichever axis cuts first.
TEST(ExpertsLayout, ExpertsLieInTheOrderOfTheMesh) {
  ParallelismSpec parallelism;
  parallelism.set_context(2);
  parallelism.set_tensor(2);
  parallelism.set_sequence_parallel(true);
  parallelism.set_expert(4);
  parallelism.set_expert_slack(4);
  UnitList units = Units();
  CutUnits(RulesFor(parallelism), units);
  int of_experts = 0;
  for (const Parameter& parameter : units.units[1].parameters()) {
    if (parameter.dims_size() < 3) continue;
    ++of_experts;
    const Dim::Section& experts = parameter.dims(0).sections(0);
    ASSERT_EQ(experts.cuts_size(), 2);
    EXPECT_EQ(experts.cuts(0).axis(), "context");
    EXPECT_EQ(experts.cuts(0).whole(), 4);
    EXPECT_EQ(experts.cuts(1).axis(), "tensor");
    EXPECT_EQ(experts.cuts(1).whole(), 2);
    EXPECT_EQ(experts.count(), 1);
  }
  EXPECT_EQ(of_experts, 3);
}

TEST(ExpertsLayout, RefusesWhatRanksCannotShare) {
  ParallelismSpec folded;
  folded.set_context(3);
  folded.set_expert(3);
  EXPECT_THAT(std::string(CheckCuts(Units(), RulesFor(folded)).message()),
              HasSubstr("parallelism.expert: 3 ranks cannot share 4 "
                        "(model.num_experts) evenly"));

  EXPECT_THAT(
      std::string(CheckCuts(Units(), RulesFor(Experts(3, 3))).message()),
      HasSubstr("parallelism.expert: 3 ranks cannot share 4 "
                "(model.num_experts) evenly; use 2 or 4"));
  EXPECT_THAT(
      std::string(
          CheckHasExperts(Units("llama"), RulesFor(Experts(2, 2))).message()),
      HasSubstr("parallelism.expert: is for models whose layers have "
                "experts, and this one has none"));
}

}  // namespace
}  // namespace troupe
