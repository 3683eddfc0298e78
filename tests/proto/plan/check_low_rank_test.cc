// Plans with adapters whose numbers point outside of their operands, as a
// scheduler of another build could send them. Each is refused before rules or
// layers follow such a number.
#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_units.h"
#include "proto/plan/lora.h"
#include "tests/proto/plan/llama_spec.h"
#include "tests/proto/plan/unit_faults.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Plan AdaptedPlan(double dropout = 0) {
  LoraSpec lora;
  lora.set_rank(2);
  lora.set_alpha(4);
  lora.set_dropout(dropout);
  lora.add_modules(kAllLinear);
  return PlanOfUnits(Llama({}), &lora);
}

UnitTable& BlockOf(Plan& plan) { return *plan.mutable_tables(1); }

// The first of a block's: it adapts queries, keys and values.
Op& AdapterOf(Plan& plan) {
  for (Op& op : *BlockOf(plan).mutable_ops()) {
    if (op.kind() == Op::LOW_RANK) return op;
  }
  ADD_FAILURE() << "the block has no LOW_RANK";
  return *BlockOf(plan).add_ops();
}

Op::LowRank::Columns& ColumnsOfB(Plan& plan, int b) {
  return *AdapterOf(plan).mutable_low_rank()->mutable_columns(b);
}

TensorSpec& OutputOf(Plan& plan, const std::string& name) {
  for (const Op::Operand& output : AdapterOf(plan).outputs()) {
    if (output.name() == name) {
      return *BlockOf(plan).mutable_tensors(output.tensor());
    }
  }
  ADD_FAILURE() << "no output " << name;
  return *BlockOf(plan).add_tensors();
}

std::string FaultOf(const std::function<void(Plan&)>& damage) {
  return UnitFaultOf(AdaptedPlan(), damage);
}

TEST(CheckLowRank, AModelWithAdaptersPasses) {
  EXPECT_TRUE(CheckUnits(AdaptedPlan()).ok()) << CheckUnits(AdaptedPlan());
  const Plan masked = AdaptedPlan(0.1);
  EXPECT_TRUE(CheckUnits(masked).ok()) << CheckUnits(masked);
}

TEST(CheckLowRank, FindsSectionsThatYHasNot) {
  for (const int section : {-1, 3, std::numeric_limits<int>::max()}) {
    EXPECT_THAT(
        FaultOf([&](Plan& p) { ColumnsOfB(p, 1).set_section(section); }),
        AllOf(HasSubstr("table 1, op "),
              HasSubstr(" LOW_RANK: weight B 1 is "
                        "of sections "),
              HasSubstr("of y, which has 3")))
        << section;
  }
  for (const int sections : {-1, 0, 3, std::numeric_limits<int>::max()}) {
    EXPECT_THAT(
        FaultOf([&](Plan& p) { ColumnsOfB(p, 1).set_sections(sections); }),
        HasSubstr("LOW_RANK: weight B 1 is of sections 1 to "))
        << sections;
  }
}

TEST(CheckLowRank, FindsWeightsThatHaveNoOther) {
  for (const int down : {-1, 3, std::numeric_limits<int>::max()}) {
    EXPECT_THAT(FaultOf([&](Plan& p) { ColumnsOfB(p, 2).set_down(down); }),
                HasSubstr("LOW_RANK: weight B 2 belongs to weight A "))
        << down;
  }
  EXPECT_THAT(FaultOf([](Plan& p) { ColumnsOfB(p, 2).set_down(1); }),
              HasSubstr("LOW_RANK: no weight B belongs to weight A 2"));
}

TEST(CheckLowRank, FindsAnotherNumberOfParameters) {
  EXPECT_THAT(
      FaultOf([](Plan& p) { AdapterOf(p).mutable_parameters()->Clear(); }),
      HasSubstr("LOW_RANK: has 0 parameters, but low has 3 sections, and 3 "
                "weights B have columns"));
  EXPECT_THAT(FaultOf([](Plan& p) {
                Dim& columns = *OutputOf(p, "low").mutable_dims(2);
                *columns.add_sections() = columns.sections(0);
              }),
              HasSubstr("LOW_RANK: has 6 parameters, but low has 4 sections"));
  EXPECT_THAT(FaultOf([](Plan& p) { AdapterOf(p).clear_low_rank(); }),
              HasSubstr("LOW_RANK: has 6 parameters"));
}

TEST(CheckLowRank, FindsOperandsThatDoNotFit) {
  EXPECT_THAT(
      FaultOf([](Plan& p) {
        OutputOf(p, "y").mutable_dims(2)->mutable_sections(0)->set_width(7);
      }),
      HasSubstr("LOW_RANK: y is [10, 30], but base is [10, 32]"));
  EXPECT_THAT(
      FaultOf([](Plan& p) {
        OutputOf(p, "low").mutable_dims(1)->mutable_sections(0)->set_count(4);
      }),
      HasSubstr("LOW_RANK: low is [8, 6], but x is [10, 12]"));
  EXPECT_THAT(
      UnitFaultOf(AdaptedPlan(0.1), [](Plan& p) { AdapterOf(p).clear_mask(); }),
      HasSubstr("LOW_RANK: has a mask without an output masked, or that "
                "without a mask"));
  EXPECT_THAT(FaultOf([](Plan& p) {
                AdapterOf(p).mutable_mask()->set_probability(0.5);
              }),
              HasSubstr("LOW_RANK: has a mask without an output masked"));
}

}  // namespace
}  // namespace troupe
