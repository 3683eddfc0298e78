// The promise, for plans that are drawn from all there are (plan_matrix.h).
#include "tests/equivalence/plan_matrix.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// Draws for each, enough that one of them is not refused.
constexpr int kTests = 8;
constexpr int kDrawsEach = 8;

class PlanMatrix : public testing::TestWithParam<int> {};

TEST_P(PlanMatrix, TrainsTheSameModel) {
  ReferenceRuns references;
  for (int i = 0; i < kDrawsEach; ++i) {
    const PlanDraw draw = DrawPlan(/*seed=*/14, GetParam() * kDrawsEach + i);
    if (!draw.Refusal().ok()) continue;
    SCOPED_TRACE(draw.name);
    const auto difference = references.Compare(draw.legs, draw.reference);
    ASSERT_TRUE(difference.ok()) << difference.status();
    EXPECT_TRUE(difference->IsRounding(references.FromF32(draw.reference)))
        << "losses " << difference->losses << ", norms " << difference->norms
        << ", weights " << difference->weights;
    return;
  }
  FAIL() << "the planner refuses them all";
}

INSTANTIATE_TEST_SUITE_P(Drawn, PlanMatrix, testing::Range(0, kTests));

}  // namespace
}  // namespace troupe
