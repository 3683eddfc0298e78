#include "scheduler/layouts/cut_units.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/find_program.h"
#include "proto/plan/layout.h"
#include "proto/plan/model.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/program_order.h"
#include "proto/plan/segments.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/layouts/table_lines.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Width 16, 2 heads, 64 tokens, two blocks; micro-batches of 2 x 8 tokens.
UnitList Units(int heads = 2, int sequences = 2) {
  JobSpec job = ExampleJob({});
  job.mutable_model()->set_num_attention_heads(heads);
  const auto resolved = ResolveModel(*job.mutable_model());
  EXPECT_TRUE(resolved.ok());
  auto units =
      ModelUnits(job.model(),
                 {.sequences = sequences, .sequence_length = 8, .dtype = F32});
  EXPECT_TRUE(units.ok()) << units.status();
  return *std::move(units);
}

std::vector<AxisRules> Rules(int tensor, bool sequence) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(tensor);
  parallelism.set_sequence_parallel(sequence);
  return RulesFor(parallelism);
}

std::vector<AxisRules> CubeRules(int tensor) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(tensor);
  parallelism.set_tensor_method("3d");
  return RulesFor(parallelism);
}

std::vector<AxisRules> ContextRules(int context, int tensor = 1,
                                    bool sequence = false) {
  ParallelismSpec parallelism;
  parallelism.set_context(context);
  parallelism.set_context_method("ulysses");
  parallelism.set_tensor(tensor);
  parallelism.set_sequence_parallel(sequence);
  return RulesFor(parallelism);
}

std::vector<AxisRules> UspRules(int context, int ulysses, int tensor = 1) {
  ParallelismSpec parallelism;
  parallelism.set_context(context);
  parallelism.set_context_method("usp");
  parallelism.set_ulysses_size(ulysses);
  parallelism.set_tensor(tensor);
  parallelism.set_sequence_parallel(tensor > 1);
  return RulesFor(parallelism);
}

TEST(CutUnits, PutsMegatronsFAndGAroundWhatIsCut) {
  UnitList units = Units();
  CutUnits(Rules(2, false), units);
  const std::string shard = " Shard(2) on tensor";
  EXPECT_THAT(
      Lines(units.tables[units.units[1].table()]),
      ElementsAre(
          "NORM [2, 8, 16] Replicate", "- / ALL_REDUCE [2, 8, 16] Replicate",
          "LINEAR [2, 8, 24]" + shard, "ATTENTION [2, 8, 8]" + shard,
          "LINEAR [2, 8, 16] Partial on tensor",
          "ALL_REDUCE / - [2, 8, 16] Replicate", "NORM [2, 8, 16] Replicate",
          "- / ALL_REDUCE [2, 8, 16] Replicate", "LINEAR [2, 8, 32]" + shard,
          "GELU [2, 8, 32]" + shard, "LINEAR [2, 8, 16] Partial on tensor",
          "ALL_REDUCE / - [2, 8, 16] Replicate", "ADD [2, 8, 16] Replicate"));
  EXPECT_THAT(Lines(units.tables[units.units[0].table()]),
              ElementsAre("EMBED [2, 8, 16] Partial on tensor",
                          "ALL_REDUCE / - [2, 8, 16] Replicate"));
  EXPECT_THAT(
      Lines(units.tables[units.units[3].table()]),
      ElementsAre("NORM [2, 8, 16] Replicate",
                  "- / ALL_REDUCE [2, 8, 16] Replicate",
                  "LINEAR [2, 8, 32]" + shard,
                  "CROSS_ENTROPY_PARTS [2, 8, 3] Shard(0) on tensor",
                  "ALL_GATHER / - [4, 8, 3] Replicate", "CROSS_ENTROPY"));
}

// Micro-batches of two sequences: blocks are put together and taken apart.
TEST(CutUnits, TurnsSequencesToHeadsAroundAttention) {
  UnitList units = Units();
  CutUnits(ContextRules(2), units);
  const std::string rows = " Shard(1) on context";
  const std::string heads = " Shard(2) on context";
  EXPECT_THAT(
      Lines(units.tables[units.units[1].table()]),
      ElementsAre("NORM [2, 4, 16]" + rows, "LINEAR [2, 4, 48]" + rows,
                  "PACK [4, 4, 24]" + rows,
                  "ALL_TO_ALL / ALL_TO_ALL [4, 4, 24]" + heads,
                  "UNPACK [2, 8, 24]" + heads, "ATTENTION [2, 8, 8]" + heads,
                  "PACK [4, 4, 8]" + heads,
                  "ALL_TO_ALL / ALL_TO_ALL [4, 4, 8]" + rows,
                  "UNPACK [2, 4, 16]" + rows, "LINEAR [2, 4, 16]" + rows,
                  "NORM [2, 4, 16]" + rows, "LINEAR [2, 4, 64]" + rows,
                  "GELU [2, 4, 64]" + rows, "LINEAR [2, 4, 16]" + rows,
                  "ADD [2, 4, 16]" + rows));
  EXPECT_THAT(Lines(units.tables[units.units[0].table()]),
              ElementsAre("EMBED [2, 4, 16]" + rows));
  EXPECT_THAT(Lines(units.tables[units.units[3].table()]),
              ElementsAre("NORM [2, 4, 16]" + rows, "LINEAR [2, 4, 64]" + rows,
                          "CROSS_ENTROPY"));
  // Nothing of the parameters is cut, and all their gradients are summands.
  const Unit& block = units.units[1];
  ASSERT_EQ(block.parts_size(), 1);
  ASSERT_EQ(block.parts(0).shares_size(), 1);
  EXPECT_EQ(block.parts(0).shares(0).axis(), "context");
  EXPECT_EQ(block.parts(0).shares(0).copies(), 2);
  EXPECT_TRUE(block.parts(0).shares(0).summed());
}

// Of one sequence blocks of rows are the sequence: nothing is moved for them.
TEST(CutUnits, PacksOnlyWhatIsNotInOrder) {
  JobSpec job = ExampleJob({});
  ASSERT_TRUE(ResolveModel(*job.mutable_model()).ok());
  auto units = ModelUnits(
      job.model(),
      {.sequences = 1, .sequence_length = 8, .dtype = F32, .dropout = 0});
  ASSERT_TRUE(units.ok()) << units.status();
  CutUnits(ContextRules(2), *units);
  const UnitTable& table = units->tables[units->units[1].table()];
  const UnitPlaces places = PlaceUnit(table, UnitUse::kTraining);
  int moved = 0;
  for (int op = 0; op < table.ops_size(); ++op) {
    const Op::Kind kind = table.ops(op).kind();
    if (kind != Op::PACK && kind != Op::UNPACK) continue;
    const TensorPlace& from = places.ops[op].inputs[0];
    const TensorPlace& to = places.ops[op].outputs[0];
    moved += from.memory != to.memory || from.offset_bytes != to.offset_bytes;
  }
  EXPECT_EQ(moved, 2);
}

// Heads are cut over tensor ranks first, positions over context ranks.
TEST(CutUnits, CutsWithinWhatTheOtherAxisCuts) {
  UnitList units = Units(/*heads=*/8);
  CutUnits(ContextRules(2, /*tensor=*/2, /*sequence=*/true), units);
  const UnitTable& table = units.tables[units.units[1].table()];
  for (const Op& op : table.ops()) {
    const TensorSpec& made = table.tensors(op.outputs(0).tensor());
    if (op.kind() == Op::ATTENTION) {
      EXPECT_THAT(DimsOf(made), ElementsAre(2, 8, 4));
      const auto& cuts = made.dims(2).sections(0).cuts();
      ASSERT_EQ(cuts.size(), 2);
      EXPECT_EQ(cuts[0].axis(), "tensor");
      EXPECT_EQ(cuts[0].whole(), 8);
      EXPECT_EQ(cuts[1].axis(), "context");
      EXPECT_EQ(cuts[1].whole(), 4);
    }
    if (op.kind() == Op::ADD) {
      EXPECT_FALSE(op.fused());  // the product's sums are exchanged first
      EXPECT_THAT(DimsOf(made), ElementsAre(2, 2, 16));
      const auto& cuts = made.dims(1).sections(0).cuts();
      ASSERT_EQ(cuts.size(), 2);
      EXPECT_EQ(cuts[0].axis(), "context");
      EXPECT_EQ(cuts[0].whole(), 8);
      EXPECT_FALSE(cuts[0].rows());
      EXPECT_EQ(cuts[1].axis(), "tensor");
      EXPECT_EQ(cuts[1].whole(), 4);
      EXPECT_TRUE(cuts[1].rows());
    }
  }
}

TEST(CheckCuts, CountsWhatTheOtherAxisLeaves) {
  const UnitList units = Units(/*heads=*/8);
  EXPECT_EQ(CheckCuts(units, ContextRules(4, 2)), absl::OkStatus());
  EXPECT_THAT(std::string(CheckCuts(units, ContextRules(3)).message()),
              HasSubstr("parallelism.context: 3 ranks cannot share 8 "
                        "(training.sequence_length) evenly; use 2 or 4"));
  EXPECT_THAT(
      std::string(CheckCuts(units, ContextRules(8, 2)).message()),
      HasSubstr("parallelism.context: 8 ranks cannot share the 4 of 8 "
                "(model.num_attention_heads) that parallelism.tensor: 2 "
                "leaves evenly; use 4"));
}

// A way out is one for all three axes, and says how many pieces a cut in pieces
// has.
TEST(CheckCuts, AdvisesCubesWhatTheyTake) {
  const auto refusal = [](int heads, int sequences, int tensor) {
    return std::string(
        CheckCuts(Units(heads, sequences), CubeRules(tensor)).message());
  };
  const auto text = [](int ranks, int count, const std::string& field,
                       int pieces, const std::string& uses) {
    return absl::StrCat("parallelism.tensor: ", ranks, " ranks cannot share ",
                        count, " (", field, ") evenly, in ", pieces,
                        " pieces; use ", uses, "a ", field, " that ", pieces,
                        " divides");
  };
  const std::string sequences = "training.micro_batch_size";
  const std::string heads = "model.num_attention_heads";
  const std::string one = "1 without parallelism.tensor_method or ";
  EXPECT_EQ(refusal(2, 4, 8), "");
  EXPECT_EQ(refusal(4, 16, 64), "");
  for (const int few : {1, 2, 3, 6}) {
    EXPECT_EQ(refusal(2, few, 8), text(8, few, sequences, 4, one));
  }
  EXPECT_EQ(refusal(2, 4, 27), text(27, 4, sequences, 9, "8 or "));
  // Of heads there are as many pieces as along one axis.
  EXPECT_EQ(refusal(1, 4, 8), text(8, 1, heads, 2, one));
  EXPECT_EQ(refusal(2, 16, 64), text(64, 2, heads, 4, "8 or "));
}

// What does not go with usp is not advised, and no rank counts twice.
TEST(CheckCuts, AdvisesUspWhatItTakes) {
  const auto refusal = [](int heads, const std::vector<AxisRules>& rules) {
    return std::string(CheckCuts(Units(heads), rules).message());
  };
  EXPECT_EQ(CheckCuts(Units(8), UspRules(4, 2)), absl::OkStatus());
  EXPECT_EQ(refusal(1, UspRules(4, 2)),
            "parallelism.ulysses_size: 2 ranks cannot share 1 "
            "(model.num_attention_heads) evenly; use "
            "parallelism.context_method: ring without it");
  EXPECT_EQ(refusal(2, UspRules(8, 4)),
            "parallelism.ulysses_size: 4 ranks cannot share 2 "
            "(model.num_attention_heads) evenly; use 2");
  EXPECT_EQ(refusal(8, UspRules(6, 2)),
            "parallelism.context: 6 ranks cannot share 8 "
            "(training.sequence_length) evenly, two pieces each; use 4 or 8");
  EXPECT_EQ(refusal(8, UspRules(12, 6)),
            "parallelism.ulysses_size: 6 ranks cannot share the 4 of 8 "
            "(training.sequence_length) that parallelism.context: 12 in rings "
            "of 2 leaves evenly; use another training.sequence_length");
  EXPECT_EQ(refusal(8, UspRules(4, 2, 4)),
            "parallelism.tensor: 4 ranks cannot share the 2 of 8 "
            "(training.sequence_length) that parallelism.context: 4 leaves "
            "evenly; use 2");
}

TEST(CutUnits, GathersAndScattersWhereTheSequenceIsCutToo) {
  UnitList units = Units();
  CutUnits(Rules(2, true), units);
  const std::string rows = " Shard(1) on tensor";
  const std::string columns = " Shard(2) on tensor";
  EXPECT_THAT(
      Lines(units.tables[units.units[1].table()]),
      ElementsAre("NORM [2, 4, 16]" + rows,
                  "ALL_GATHER / REDUCE_SCATTER [2, 8, 16] Replicate",
                  "LINEAR [2, 8, 24]" + columns,
                  "ATTENTION [2, 8, 8]" + columns,
                  "LINEAR [2, 8, 16] Partial on tensor",
                  "REDUCE_SCATTER / ALL_GATHER [2, 4, 16]" + rows,
                  "NORM [2, 4, 16]" + rows,
                  "ALL_GATHER / REDUCE_SCATTER [2, 8, 16] Replicate",
                  "LINEAR [2, 8, 32]" + columns, "GELU [2, 8, 32]" + columns,
                  "LINEAR [2, 8, 16] Partial on tensor",
                  "REDUCE_SCATTER / ALL_GATHER [2, 4, 16]" + rows,
                  "ADD [2, 4, 16]" + rows));
  EXPECT_THAT(Lines(units.tables[units.units[0].table()]),
              ElementsAre("EMBED [2, 8, 16] Partial on tensor",
                          "REDUCE_SCATTER / ALL_GATHER [2, 4, 16]" + rows));
}

// Products gather rows along one axis and scatter sums along the other, and the
// next one the opposite; norms have sums of rows between.
TEST(CutUnits, CubesGatherAlongOneAxisAndScatterAlongAnother) {
  UnitList units = Units(/*heads=*/2, /*sequences=*/4);
  CutUnits(CubeRules(8), units);
  const std::string x = "Shard(0) on tensor_x";
  const std::string residual =
      " Shard(2) on tensor_z, Shard(0) on tensor_y, " + x;
  const std::string within =
      " Shard(0) on tensor_z, Shard(2) on tensor_y, " + x;
  const std::string row_sums = "Shard(0) on tensor_y, " + x;
  const auto into = [&](const std::string& columns) {
    return std::vector<std::string>{
        "ROW_SUMS [1, 8, 2] Partial on tensor_z, " + row_sums,
        "ALL_REDUCE / ALL_REDUCE [1, 8, 2] " + row_sums,
        "SPLIT_NORM [1, 8, 8]" + residual,
        "ALL_GATHER / REDUCE_SCATTER [2, 8, 8] Shard(2) on tensor_z, " + x,
        "LINEAR [2, 8, " + columns +
            "] Partial on tensor_z, Shard(2) on tensor_y, " + x,
        "REDUCE_SCATTER / ALL_GATHER [1, 8, " + columns + "]" + within};
  };
  const auto back = [&](const std::string& columns) {
    return std::vector<std::string>{
        "ALL_GATHER / REDUCE_SCATTER [2, 8, " + columns +
            "] Shard(2) on tensor_y, " + x,
        "LINEAR [2, 8, 8] Shard(2) on tensor_z, Partial on tensor_y, " + x,
        "REDUCE_SCATTER / ALL_GATHER [1, 8, 8]" + residual,
        "ADD [1, 8, 8]" + residual};
  };
  std::vector<std::string> lines;
  for (const std::vector<std::string>& some : {into("24"),
                                               {"ATTENTION [1, 8, 8]" + within},
                                               back("8"),
                                               into("32"),
                                               {"GELU [1, 8, 32]" + within},
                                               back("32")}) {
    lines.insert(lines.end(), some.begin(), some.end());
  }
  EXPECT_THAT(Lines(units.tables[units.units[1].table()]),
              testing::ElementsAreArray(lines));
  // Weights are cut by y and z, and the same along x, of which each sums.
  for (const Unit& unit : units.units) {
    for (const Unit::Part& part : unit.parts()) {
      bool summed = false;
      for (const Unit::Part::Share& share : part.shares()) {
        summed |=
            share.axis() == "tensor_x" && share.copies() == 2 && share.summed();
      }
      EXPECT_TRUE(summed) << unit.ShortDebugString();
    }
  }
}

TEST(CutUnits, SegmentsLieBetweenExchangesThatMoveSomething) {
  UnitList units = Units();
  CutUnits(Rules(2, false), units);
  const UnitTable& block = units.tables[units.units[1].table()];
  const auto ends = [](const std::vector<Segment>& segments) {
    std::vector<std::string> texts;
    for (const Segment& s : segments) {
      texts.push_back(absl::StrCat(s.begin, "-", s.end, " x", s.exchange));
    }
    return absl::StrJoin(texts, ", ");
  };
  EXPECT_EQ(ends(ForwardSegments(block)), "0-5 x5, 6-11 x11, 12-13 x-1");
  EXPECT_EQ(ends(BackwardSegments(block)), "0-1 x-1, 2-7 x1, 8-13 x7");
  EXPECT_EQ(ends(ForwardSegments(Units().tables[1])), "0-9 x-1");
}

// Norms and biases of what is cut by rows are on both ranks; where the sequence
// is cut, norms' gradients are summands.
TEST(CutUnits, PartsAreByWhoHasAndWhoSums) {
  for (const bool sequence : {false, true}) {
    UnitList units = Units();
    const int64_t whole = units.units[1].flat_elements();
    CutUnits(Rules(2, sequence), units);
    const Unit& block = units.units[1];
    int64_t elements = 0;
    std::vector<std::string> parts;
    for (const Unit::Part& part : block.parts()) {
      elements += part.elements();
      std::string text = "cut";
      for (const Unit::Part::Share& share : part.shares()) {
        text = absl::StrCat("on ", share.copies(),
                            share.summed() ? ", summed" : "");
      }
      parts.push_back(text);
    }
    EXPECT_EQ(elements, block.flat_elements());
    EXPECT_LT(elements, 0.6 * static_cast<double>(whole));
    if (sequence) {
      EXPECT_THAT(parts,
                  testing::UnorderedElementsAre("on 2", "on 2, summed", "cut"));
      EXPECT_EQ(parts.back(), "cut");
    } else {
      EXPECT_THAT(parts, ElementsAre("on 2", "cut"));
    }
    // Parameters lie in their parts, and nowhere twice.
    std::vector<bool> taken(block.flat_elements(), false);
    for (const Parameter& parameter : block.parameters()) {
      for (int64_t i = 0; i < LocalElements(parameter); ++i) {
        EXPECT_FALSE(taken.at(parameter.offset() + i)) << parameter.name();
        taken[parameter.offset() + i] = true;
      }
    }
  }
}

TEST(CutUnits, NothingIsCutForOneRank) {
  UnitList units = Units();
  const UnitList before = units;
  CutUnits(Rules(1, false), units);
  ASSERT_EQ(units.units.size(), before.units.size());
  for (size_t u = 0; u < units.units.size(); ++u) {
    EXPECT_EQ(units.units[u].SerializeAsString(),
              before.units[u].SerializeAsString());
  }
}

TEST(CheckCuts, NamesTheFieldAndTheNearestSizes) {
  EXPECT_TRUE(CheckCuts(Units(2), Rules(2, true)).ok());
  const absl::Status heads = CheckCuts(Units(4), Rules(3, false));
  EXPECT_EQ(heads.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(heads.message()),
              HasSubstr("parallelism.tensor: 3 ranks cannot share 4 "
                        "(model.num_attention_heads) evenly; use 2 or 4"));
  const absl::Status most = CheckCuts(Units(2), Rules(4, false));
  EXPECT_THAT(std::string(most.message()), HasSubstr("evenly; use 2"));
}

// The gradients of a segment's weights do not wait for the exchange behind it.
TEST(CutUnits, WeightsGradientsAreComputedWhileRanksExchange) {
  for (const bool sequence : {false, true}) {
    JobSpec job = ExampleJob({});
    job.mutable_parallelism()->set_tensor(2);
    job.mutable_parallelism()->set_sequence_parallel(sequence);
    const Plan plan = ExamplePlan(job);
    for (const Role& role : plan.roles()) {
      const Program& train = *FindProgram(role, Program::TRAIN);
      const ProgramOrder order(train, plan.lanes_size());
      int beside = 0;
      for (int i = 1; i < train.instructions_size(); ++i) {
        const Instruction& exchange = train.instructions(i - 1);
        const Instruction& weight = train.instructions(i);
        if (weight.kind() != Instruction::BACKWARD_WEIGHT ||
            exchange.kind() != Instruction::EXCHANGE) {
          continue;
        }
        // What gathers the gradient of a product that is cut by rows gives it
        // to the weights' gradients, too; those behind it are a norm's.
        if (exchange.exchange().collective() == ALL_GATHER) continue;
        EXPECT_FALSE(order.Before(i - 1, i)) << "instruction " << i;
        ++beside;
      }
      // Two in each of two blocks, and the head's.
      EXPECT_EQ(beside, 5);
    }
  }
}

// Neighbours in a bucket are units of one part each.
TEST(CutUnits, UnitsInPartsShareNoBucketWithOthers) {
  for (const bool tied : {false, true}) {
    JobSpec job = ExampleJob({.data = 2});
    ModelSpec& model = *job.mutable_model();
    model.set_architecture("llama");
    model.clear_layer_norm_epsilon();
    model.set_tie_word_embeddings(tied);
    job.mutable_parallelism()->set_tensor(2);
    job.mutable_parallelism()->set_bucket_megabytes(25);
    const auto plan = CompilePlan(job, ExampleWorkers(4));
    EXPECT_TRUE(plan.ok()) << plan.status();
  }
}

TEST(CheckCuts, RefusesFewerTokensThanRanks) {
  JobSpec job = ExampleJob({});
  job.mutable_model()->set_num_attention_heads(8);
  job.mutable_model()->set_vocab_size(5);
  ASSERT_TRUE(ResolveModel(*job.mutable_model()).ok());
  const auto small = ModelUnits(
      job.model(),
      {.sequences = 2, .sequence_length = 8, .dtype = F32, .dropout = 0});
  ASSERT_TRUE(small.ok());
  const absl::Status status = CheckCuts(*small, Rules(8, false));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("8 ranks cannot share 5 (model.vocab_size)"));
}

}  // namespace
}  // namespace troupe
