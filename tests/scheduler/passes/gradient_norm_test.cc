#include "scheduler/passes/gradient_norm.h"

#include <map>

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(GradientNorm, ReplicasShareEachUnitLastUnitFirst) {
  const Draft draft = ExampleDraft(ExampleJob({.data = 2}), "gradient norm");
  const std::string words = ProgramWords(draft.plan, 1, Program::TRAIN);
  EXPECT_EQ(words.substr(words.find("R u0 g0")),
            "R u0 g0 | N u3 g0 | N u2 g0 | N u1 g0 | N u0 g0");
}

TEST(GradientNorm, OneRankCountsAll) {
  const Draft draft = ExampleDraft(ExampleJob({}), "gradient norm");
  const std::string words = ProgramWords(draft.plan, 0, Program::TRAIN);
  EXPECT_EQ(words.substr(words.find('N')), "N u3 | N u2 | N u1 | N u0");
}

}  // namespace
}  // namespace troupe
