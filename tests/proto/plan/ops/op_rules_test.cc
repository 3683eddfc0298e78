#include "proto/plan/ops/op_rules.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_builder.h"

namespace troupe {
namespace {

// 3 sequences of 5, hidden 24, 3 query heads and one of key and value, of 8.
constexpr double kRows = 15;
constexpr double kHidden = 24;
constexpr double kWide = 40;  // intermediate

Dim Columns(Dim::Kind kind, int64_t count) { return DimOf({{kind, count}}); }

// A unit in which every kind but EMBED and CROSS_ENTROPY occurs.
UnitTable Block(ElementType dtype) {
  UnitBuilder unit(Unit::BLOCK, {.index = 1,
                                 .shape = {.sequences = 3,
                                           .sequence_length = 5,
                                           .dtype = dtype,
                                           .dropout = 0.5}});
  const Dim hidden = Columns(Dim::HIDDEN, 24);
  const Dim wide = Columns(Dim::INTERMEDIATE, 40);
  const Dim qkv = DimOf({{Dim::HEADS, 3, 8},
                         {Dim::KEY_VALUE_HEADS, 1, 8},
                         {Dim::KEY_VALUE_HEADS, 1, 8}});
  const int x = unit.Input(hidden);
  const int norm = unit.Norm({.x = x, .name = "n1", .output = "n1"}).y;
  const int turned = unit.Rope({.x = unit.Linear({.x = norm,
                                                  .projections = {{"q", qkv}},
                                                  .output = "qkv",
                                                  .bias = true}),
                                .training = {{1, 0.5, 0.25, 0.125}}});
  const int back = unit.Linear({.x = unit.Attention(turned),
                                .projections = {{"o", hidden}},
                                .output = "o"});
  const auto [norm_2, sum] = unit.Norm({.x = unit.Dropout(back),
                                        .residual = x,
                                        .name = "n2",
                                        .output = "n2",
                                        .root_mean_square = true});
  const int gated =
      unit.SwiGlu(unit.Linear({.x = norm_2,
                               .projections = {{"gate", wide}, {"up", wide}},
                               .output = "gate_up"}));
  const int grown =
      unit.Linear({.x = gated, .projections = {{"fc", wide}}, .output = "fc"});
  const int down = unit.Linear({.x = unit.Gelu(grown),
                                .projections = {{"down", hidden}},
                                .output = "down"});
  unit.Output(unit.Add({.x = down, .residual = sum}));
  return std::move(unit).Build().table;
}

std::vector<OpRules> RulesOfKind(const UnitTable& table, Op::Kind kind) {
  std::vector<OpRules> rules;
  for (const Op& op : table.ops()) {
    if (op.kind() == kind) rules.push_back(RulesOf({table, op}));
  }
  return rules;
}

// Multiply-adds count twice, and once for each gradient again.
TEST(OpRules, ProductsAreCountedByTheirSizes) {
  const std::vector<OpRules> linears = RulesOfKind(Block(F32), Op::LINEAR);
  ASSERT_EQ(linears.size(), 5u);
  const double columns[] = {40, 24, 80, 40, 24};
  const double in[] = {24, 24, 24, 40, 40};
  for (int i = 0; i < 5; ++i) {
    const double flops = 2 * kRows * in[i] * columns[i];
    EXPECT_EQ(linears[i].forward.matmul_flops(), flops);
    EXPECT_EQ(linears[i].backward_input.matmul_flops(), flops);
    EXPECT_EQ(linears[i].backward_weight.matmul_flops(), flops);
    // Only the bias is left to read.
    EXPECT_EQ(linears[i].backward_weight.memory_bytes(),
              i == 0 ? 4 * kRows * 40 : 0);
  }
}

// Query t sees t + 1 keys: 15 of 25 pairs of each sequence.
TEST(OpRules, AttentionLeavesTheMaskedHalfOut) {
  const OpRules rules = RulesOfKind(Block(F32), Op::ATTENTION).at(0);
  const double product = 2 * 3 * 15 * kHidden;
  EXPECT_EQ(rules.forward.attention_flops(), 2 * product);
  EXPECT_EQ(rules.backward_input.attention_flops(), 5 * product);
}

TEST(OpRules, WhatTouchesMemoryIsCountedInBytesOfItsType) {
  for (const ElementType dtype : {F32, BF16}) {
    const UnitTable table = Block(dtype);
    const double row = kRows * (dtype == F32 ? 4 : 2);
    const std::vector<OpRules> norms = RulesOfKind(table, Op::NORM);
    ASSERT_EQ(norms.size(), 2u);
    EXPECT_EQ(norms[0].forward.memory_bytes(), 2 * kHidden * row);
    EXPECT_EQ(norms[1].forward.memory_bytes(), 4 * kHidden * row);
    for (const OpRules& norm : norms) {  // x and the sum are read elsewhere
      EXPECT_EQ(norm.backward_input.memory_bytes(), 4 * kHidden * row);
      EXPECT_EQ(norm.backward_weight.memory_bytes(), 2 * kHidden * row);
    }
    const OpRules rope = RulesOfKind(table, Op::ROPE).at(0);
    EXPECT_EQ(rope.forward.memory_bytes(), 2 * (24 + 8) * row);  // not values
    const OpRules swiglu = RulesOfKind(table, Op::SWIGLU).at(0);
    EXPECT_EQ(swiglu.forward.memory_bytes(), 3 * kWide * row);
    EXPECT_EQ(swiglu.backward_input.memory_bytes(), 5 * kWide * row);
    EXPECT_EQ(swiglu.forward.elementwise_ops(), kWide * kRows);
    const OpRules gelu = RulesOfKind(table, Op::GELU).at(0);
    EXPECT_EQ(gelu.forward.memory_bytes(), kWide * row);
    EXPECT_EQ(gelu.backward_input.memory_bytes(), 3 * kWide * row);
    EXPECT_EQ(RulesOfKind(table, Op::ADD).at(0).forward.memory_bytes(),
              3 * kHidden * row);
    EXPECT_EQ(RulesOfKind(table, Op::DROPOUT).at(0).forward.memory_bytes(), 0);
  }
}

TEST(OpRules, AUnitsWorkIsThatOfItsOps) {
  const UnitTable table = Block(F32);
  double flops = 0;
  double bytes = 0;
  for (const Op& op : table.ops()) {
    flops += RulesOf({table, op}).forward.matmul_flops();
    bytes += RulesOf({table, op}).backward_input.memory_bytes();
  }
  EXPECT_EQ(WorkOf(table).forward.matmul_flops(), flops);
  EXPECT_EQ(WorkOf(table).backward_input.memory_bytes(), bytes);
  EXPECT_GT(flops, 0);
  EXPECT_GT(bytes, 0);
}

// A rule that names an operand which its op does not have would be ignored.
TEST(OpRules, GradientsAreOfOperandsThatTheOpsHave) {
  const UnitTable table = Block(F32);
  std::set<Op::Kind> kinds;
  for (const Op& op : table.ops()) {
    kinds.insert(op.kind());
    const OpView view(table, op);
    const OpRules rules = RulesOf(view);
    for (const InputGradient& gradient : rules.gradients) {
      EXPECT_TRUE(view.HasInput(gradient.input)) << gradient.input;
      EXPECT_TRUE(gradient.of.empty() || view.HasInput(gradient.of) ||
                  view.HasOutput(gradient.of))
          << gradient.of;
    }
    for (const InPlace& pair : rules.in_place) {
      EXPECT_TRUE(view.HasInput(pair.input) && view.HasOutput(pair.output));
    }
    // Statistics that only some norms have may be missing.
    for (const std::string& name : rules.backward_input_reads) {
      EXPECT_TRUE(name == "mean" || view.HasInput(name) || view.HasOutput(name))
          << name;
    }
  }
  EXPECT_EQ(kinds.size(), 8u);
}

}  // namespace
}  // namespace troupe
