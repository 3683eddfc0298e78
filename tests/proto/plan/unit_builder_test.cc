#include "proto/plan/unit_builder.h"

#include <initializer_list>
#include <set>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_list.h"

namespace troupe {
namespace {

constexpr MicroBatchShape kShape = {
    .sequences = 2, .sequence_length = 8, .dtype = BF16};

Dim Columns(int64_t count) { return DimOf({{Dim::HIDDEN, count}}); }

Unit UnitOf(UnitBuilder builder) { return std::move(builder).Build().unit; }

TEST(UnitBuilder, StartsEachParameterOnACacheLineOfBf16) {
  UnitBuilder builder(Unit::BLOCK, {.index = 3, .shape = kShape});
  builder.Parameter("a", {Columns(3), Columns(11)}, Parameter::NORMAL, 0.5);
  builder.Parameter("b", {Columns(32)}, Parameter::ONES);
  builder.Parameter("c", {Columns(1)}, Parameter::ZEROS);
  const Unit unit = UnitOf(std::move(builder));
  EXPECT_EQ(unit.kind(), Unit::BLOCK);
  EXPECT_EQ(unit.parameters(0).offset(), 0);
  EXPECT_EQ(unit.parameters(1).offset(), 64);
  EXPECT_EQ(unit.parameters(2).offset(), 96);
  EXPECT_EQ(unit.flat_elements(), 128);
  EXPECT_EQ(unit.parameters(0).dtype(), BF16);
  EXPECT_EQ(unit.parameters(0).init_std(), 0.5);
  EXPECT_TRUE(unit.parameters(0).weight_decay());
  EXPECT_FALSE(unit.parameters(1).weight_decay());
}

TEST(UnitBuilder, GivesEachParameterARandomSiteOfItsOwn) {
  UnitBuilder first(Unit::EMBEDDING, {.index = 0});
  UnitBuilder second(Unit::BLOCK, {.index = 1});
  for (int i = 0; i < 64; ++i) {
    first.Parameter("x", {Columns(1)}, Parameter::ZEROS);
    second.Parameter("x", {Columns(1)}, Parameter::ZEROS);
  }
  const Unit units[] = {UnitOf(std::move(first)), UnitOf(std::move(second))};
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(units[0].parameters(i).random_site(), i);
    EXPECT_EQ(units[1].parameters(i).random_site(), 64 + i);
  }
}

// One that multiplies its input by `weights` tables, a layer of a model.
UnitBuilder Block(int64_t layer, int64_t width, double dropout = 0) {
  MicroBatchShape shape = kShape;
  shape.dropout = dropout;
  UnitBuilder unit(Unit::BLOCK,
                   {.index = 1 + layer, .layer = layer, .shape = shape});
  const Dim hidden = DimOf({{Dim::HIDDEN, width}});
  const int x = unit.Input(hidden);
  const int y = unit.Linear({.x = unit.Norm({.x = x, .name = "n"}).y,
                             .projections = {{"w", hidden}},
                             .output = "w"});
  unit.Output(unit.Add({.x = unit.Dropout(y), .residual = x}));
  return unit;
}

TEST(UnitBuilder, UnitsThatDoTheSameShareATable) {
  UnitList list;
  list.Append(Block(0, 32));
  list.Append(Block(1, 32));
  list.Append(Block(2, 64));
  ASSERT_EQ(list.tables.size(), 2u);
  EXPECT_EQ(list.units[0].table(), 0);
  EXPECT_EQ(list.units[1].table(), 0);
  EXPECT_EQ(list.units[2].table(), 1);
  EXPECT_EQ(list.units[1].layer(), 1);
  EXPECT_EQ(list.units[0].stash_bytes(), list.units[1].stash_bytes());
  EXPECT_EQ(list.units[0].forward().SerializeAsString(),
            list.units[1].forward().SerializeAsString());
  EXPECT_GT(list.units[2].stash_bytes(), list.units[1].stash_bytes());
}

// Where a job has no dropout, nothing of it is in the plan.
TEST(UnitBuilder, DropoutIsAnOpThatItsReaderCarriesOut) {
  const UnitTable without = Block(0, 32).Build().table;
  const UnitTable with = Block(0, 32, 0.25).Build().table;
  EXPECT_EQ(without.ops_size(), 3);
  ASSERT_EQ(with.ops_size(), 4);
  EXPECT_EQ(with.ops(2).kind(), Op::DROPOUT);
  EXPECT_TRUE(with.ops(2).fused());
  EXPECT_EQ(with.ops(2).mask().probability(), 0.25);
  EXPECT_EQ(with.ops(2).mask().sites_per_layer(), 1);
}

TEST(UnitBuilder, ASumIsWorkOfTheProductThatItFollows) {
  const UnitTable right_behind = Block(0, 32).Build().table;
  EXPECT_EQ(right_behind.ops(2).kind(), Op::ADD);
  EXPECT_TRUE(right_behind.ops(2).fused());
  const UnitTable behind_a_mask = Block(0, 32, 0.25).Build().table;
  EXPECT_EQ(behind_a_mask.ops(3).kind(), Op::ADD);
  EXPECT_FALSE(behind_a_mask.ops(3).fused());
}

TEST(UnitBuilder, AHeadIsTiedOrHasATableOfItsOwn) {
  const auto head = [](const char* tied_to) {
    UnitBuilder unit(Unit::HEAD, {.index = 2, .shape = kShape});
    const int x = unit.Input(DimOf({{Dim::HIDDEN, 32}}));
    unit.Loss({.x = unit.Norm({.x = x, .name = "n"}).y,
               .weight = "lm_head.weight",
               .tied_to = tied_to,
               .vocabulary = 100,
               .init_std = 0.5});
    UnitList list;
    list.Append(std::move(unit));
    return list;
  };
  const UnitList tied = head("table");
  EXPECT_EQ(tied.units[0].parameters_size(), 2);
  ASSERT_EQ(tied.units[0].tied_size(), 1);
  EXPECT_EQ(tied.units[0].tied(0).unit(), 0);
  EXPECT_EQ(tied.units[0].tied(0).parameter(), "table");
  EXPECT_EQ(tied.tables[0].ops(1).parameters(0), 2) << "behind its own";

  const UnitList own = head("");
  EXPECT_EQ(own.units[0].tied_size(), 0);
  ASSERT_EQ(own.units[0].parameters_size(), 3);
  EXPECT_EQ(own.units[0].parameters(2).name(), "lm_head.weight");
  EXPECT_EQ(own.units[0].parameters(2).init_std(), 0.5);

  for (const UnitList& list : {tied, own}) {
    const Unit& unit = list.units[0];
    // Two statistics of 16 rows in f32; the norm's output and the logits, whose
    // rows are on cache lines.
    EXPECT_EQ(unit.stash_bytes(), 2 * 64 + 2 * 16 * 32 + 2 * 16 * 128);
    EXPECT_EQ(unit.weight_stash_bytes(), 2 * 16 * 32);
    EXPECT_EQ(unit.workspace_bytes(), 0);
    EXPECT_EQ(unit.forward().matmul_flops(), 2.0 * 16 * 32 * 100);
  }
}

LoraSpec Lora(std::initializer_list<const char*> modules) {
  LoraSpec lora;
  lora.set_rank(4);
  lora.set_alpha(8);
  for (const char* const module : modules) lora.add_modules(module);
  return lora;
}

// Two projections of one input, and a norm before them.
UnitBuilder::Built Projections(const LoraSpec* lora,
                               const std::string& within = "") {
  MicroBatchShape shape = kShape;
  shape.lora = lora;
  UnitBuilder unit(Unit::BLOCK, {.index = 1, .shape = shape});
  const int norm = unit.Norm({.x = unit.Input(Columns(6)), .name = "n"}).y;
  unit.Output(unit.Linear({.x = norm,
                           .projections = {{"h.0.q", Columns(3), within},
                                           {"h.0.v", Columns(5), within}},
                           .output = "qv",
                           .init_std = 0.1}));
  return std::move(unit).Build();
}

const Op* LowRankOf(const UnitTable& table) {
  for (const Op& op : table.ops()) {
    if (op.kind() == Op::LOW_RANK) return &op;
  }
  return nullptr;
}

TEST(UnitBuilder, AdaptsTheLayersThatAreNamed) {
  const LoraSpec lora = Lora({"v"});
  const UnitBuilder::Built built = Projections(&lora);
  const Op* const op = LowRankOf(built.table);
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->low_rank().scale(), 2);
  ASSERT_EQ(op->low_rank().columns_size(), 1);
  EXPECT_EQ(op->low_rank().columns(0).section(), 1);
  EXPECT_EQ(op->low_rank().columns(0).sections(), 1);
  ASSERT_EQ(op->parameters_size(), 2);
  const Parameter& down = built.unit.parameters(op->parameters(0));
  const Parameter& up = built.unit.parameters(op->parameters(1));
  EXPECT_EQ(down.name(), "h.0.v.lora_A.weight");
  EXPECT_EQ(up.name(), "h.0.v.lora_B.weight");
  EXPECT_EQ(DimSize(down.dims(0)), 4);
  EXPECT_EQ(DimSize(down.dims(1)), 6);
  EXPECT_EQ(DimSize(up.dims(0)), 5);
  EXPECT_EQ(DimSize(up.dims(1)), 4);
  EXPECT_EQ(down.init(), Parameter::NORMAL);
  EXPECT_EQ(up.init(), Parameter::ZEROS);
}

TEST(UnitBuilder, TrainsAdaptersAloneAndDrawsTheModelAsWithoutThem) {
  const LoraSpec lora = Lora({"all-linear"});
  const UnitBuilder::Built plain = Projections(nullptr);
  const UnitBuilder::Built adapted = Projections(&lora);
  std::set<int> sites;
  size_t adapters = 0;
  for (const Parameter& parameter : adapted.unit.parameters()) {
    EXPECT_EQ(parameter.frozen(), !parameter.adapter()) << parameter.name();
    EXPECT_TRUE(sites.insert(parameter.random_site()).second);
    adapters += parameter.adapter() ? 1 : 0;
    for (const Parameter& same : plain.unit.parameters()) {
      if (same.name() != parameter.name()) continue;
      EXPECT_EQ(same.random_site(), parameter.random_site());
      EXPECT_FALSE(same.frozen());
    }
  }
  EXPECT_EQ(adapters, 4u);
  EXPECT_EQ(adapted.unit.parameters_size(), plain.unit.parameters_size() + 4);
}

// The norm's output has one gradient: no FORK stands between the two.
TEST(UnitBuilder, ALinearAndItsAdapterReadOneTensor) {
  const LoraSpec lora = Lora({"all-linear"});
  const UnitTable table = Projections(&lora).table;
  int linear = -1;
  for (int i = 0; i < table.ops_size(); ++i) {
    EXPECT_NE(table.ops(i).kind(), Op::FORK);
    if (table.ops(i).kind() == Op::LINEAR) linear = i;
  }
  ASSERT_GE(linear, 0);
  EXPECT_TRUE(table.ops(linear).linear().adapted());
  EXPECT_EQ(table.ops(linear).inputs(0).tensor(),
            LowRankOf(table)->inputs(0).tensor());
}

// Hugging Face has one layer for both.
TEST(UnitBuilder, ProjectionsWithinOneTensorHaveOneDown) {
  const LoraSpec lora = Lora({"qv"});
  const UnitBuilder::Built built = Projections(&lora, "h.0.qv");
  const Op* const op = LowRankOf(built.table);
  ASSERT_NE(op, nullptr);
  ASSERT_EQ(op->parameters_size(), 3);
  EXPECT_EQ(built.unit.parameters(op->parameters(0)).name(),
            "h.0.qv.lora_A.weight");
  for (int b = 0; b < 2; ++b) {
    EXPECT_EQ(op->low_rank().columns(b).down(), 0);
    EXPECT_EQ(op->low_rank().columns(b).section(), b);
    EXPECT_EQ(built.unit.parameters(op->parameters(1 + b)).part_of().name(),
              "h.0.qv.lora_B.weight");
  }
}

}  // namespace
}  // namespace troupe
