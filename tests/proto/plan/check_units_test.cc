#include "proto/plan/check_units.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proto/plan/gpt2_spec.h"
#include "tests/proto/plan/unit_faults.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Of GPT-2 with two blocks: tables of the embedding, the blocks and the head.
Plan GoodPlan() { return PlanOfUnits(Gpt2(2, 24, 3)); }

std::string FaultOf(const std::function<void(Plan&)>& damage) {
  return UnitFaultOf(GoodPlan(), damage);
}

TEST(CheckUnits, AModelsUnitsPass) {
  EXPECT_TRUE(CheckUnits(GoodPlan()).ok()) << CheckUnits(GoodPlan());
}

TEST(CheckUnits, FindsTablesThatMakeNoSense) {
  const auto block = [](Plan& p) { return p.mutable_tables(1); };
  EXPECT_THAT(FaultOf([&](Plan& p) { block(p)->mutable_ops(1)->clear_kind(); }),
              HasSubstr("table 1, op 1 KIND_UNSPECIFIED: has no kind"));
  EXPECT_THAT(FaultOf([&](Plan& p) {
                block(p)->mutable_ops(1)->mutable_inputs(0)->set_tensor(99);
              }),
              HasSubstr("table 1, op 1 LINEAR: reads tensor 99 of 16"));
  EXPECT_THAT(FaultOf([&](Plan& p) {
                block(p)->mutable_ops(1)->mutable_outputs(0)->set_tensor(-1);
              }),
              HasSubstr("table 1, op 1 LINEAR: makes tensor -1 of 16"));
  EXPECT_THAT(
      FaultOf([&](Plan& p) { block(p)->mutable_ops()->SwapElements(1, 2); }),
      HasSubstr("op 1 ATTENTION: reads attn.c_attn, which no op "
                "before it makes"));
  EXPECT_THAT(
      FaultOf([&](Plan& p) { *block(p)->add_ops() = block(p)->ops(1); }),
      HasSubstr("LINEAR: makes attn.c_attn, which is there already"));
  EXPECT_THAT(
      FaultOf([&](Plan& p) { block(p)->mutable_tensors(4)->clear_dtype(); }),
      HasSubstr("table 1, tensor attn.c_attn: has no type"));
  EXPECT_THAT(FaultOf([&](Plan& p) {
                block(p)->mutable_ops(1)->mutable_inputs(0)->set_name("input");
              }),
              HasSubstr("table 1, op 1 LINEAR: has 0 operands x"));
  EXPECT_THAT(FaultOf([&](Plan& p) {
                Op::Operand& more = *block(p)->mutable_ops(1)->add_inputs();
                more.set_name("z");
              }),
              HasSubstr("has operands that its kind has not"));
  EXPECT_THAT(FaultOf([&](Plan& p) {
                block(p)
                    ->mutable_tensors(4)
                    ->mutable_dims(2)
                    ->mutable_sections()
                    ->RemoveLast();
              }),
              HasSubstr("op 2 ATTENTION: qkv has 3 dims, the last of 2"));
  EXPECT_THAT(FaultOf([&](Plan& p) {
                for (int d = 0; d < 2; ++d) {
                  block(p)
                      ->mutable_tensors(1)
                      ->mutable_dims(d)
                      ->mutable_sections(0)
                      ->set_count(int64_t{1} << 32);
                }
              }),
              HasSubstr("table 1, tensor ln_1: is too large"));
  EXPECT_THAT(FaultOf([&](Plan& p) {
                block(p)
                    ->mutable_tensors(4)
                    ->mutable_dims(2)
                    ->mutable_sections(1)
                    ->set_count(0);
              }),
              HasSubstr("tensor attn.c_attn: has a dim of 0 times 8"));
}

TEST(CheckUnits, FindsUnitsThatDoNotFitTheirTables) {
  EXPECT_THAT(FaultOf([](Plan& p) { p.mutable_units(1)->set_table(3); }),
              HasSubstr("unit 1: its table is not in the plan"));
  EXPECT_THAT(FaultOf([](Plan& p) { p.mutable_units(1)->clear_table(); }),
              HasSubstr("unit 1: its table is not in the plan"));
  EXPECT_THAT(
      FaultOf([](Plan& p) { p.mutable_units(2)->set_stash_bytes(64); }),
      HasSubstr(
          "unit 2: its stash has 64 bytes in the plan, but its ops need"));
  EXPECT_THAT(
      FaultOf([](Plan& p) { p.mutable_units(1)->set_workspace_bytes(0); }),
      HasSubstr("unit 1: its workspace has 0 bytes"));
  EXPECT_THAT(FaultOf([](Plan& p) {
                p.mutable_units(1)->mutable_parameters()->RemoveLast();
              }),
              HasSubstr("unit 1: LINEAR uses parameter 11 of 11"));
  EXPECT_THAT(FaultOf([](Plan& p) {
                p.mutable_units(3)->mutable_tied(0)->set_parameter("wte");
              }),
              HasSubstr("unit 3: is tied to wte of unit 0, which the plan "
                        "does not have"));
  EXPECT_THAT(
      FaultOf([](Plan& p) { p.mutable_units(1)->set_flat_elements(100); }),
      HasSubstr("does not lie within 100 elements"));
  EXPECT_THAT(FaultOf([](Plan& p) {
                p.mutable_units(1)
                    ->mutable_parameters(2)
                    ->mutable_dims(0)
                    ->mutable_sections(0)
                    ->set_count(int64_t{1} << 62);
              }),
              HasSubstr("attn.c_attn.weight does not lie within"));
}

}  // namespace
}  // namespace troupe
