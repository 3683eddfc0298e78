#include <stdlib.h>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class PlanTest : public CommandTestBase {};

// With the real planner it is tested in tests/cluster.
TEST_F(PlanTest, RefusesAWrongFileBeforeItAsksAnyone) {
  const std::string file = File("bad_plan.yaml", "parallelism: {dta: 4}\n");
  const CommandOutcome outcome = RunCommand({"plan", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "troupe: " + file +
                             ":1:15: parallelism.dta: no such field; did you "
                             "mean data?\n");
}

TEST_F(PlanTest, NeedsTheDaemonsPrograms) {
  // This test's own folder has none, and neither has the PATH.
  const std::string file = File("plan.yaml", "name: demo\n");
  setenv("PATH", "/no/such", 1);
  const CommandOutcome outcome = RunCommand({"plan", file, "--workers", "2"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.rfind("troupe: cannot find troupe-scheduler", 0), 0)
      << outcome.err;
}

}  // namespace
}  // namespace troupe
