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

TEST_F(PlanTest, PlansForARunningCluster) {
  const std::string file = File("cluster_plan.yaml", "name: demo\n");
  const CommandOutcome outcome = Ask({"plan", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("plan of demo, fingerprint", 0), 0);
  scheduler_.refusal = absl::InvalidArgumentError("name: too plain");
  EXPECT_EQ(Ask({"plan", file}).err,
            "troupe: " + file + ":1:7: name: too plain\n");
  EXPECT_EQ(Ask({"plan", file, "--workers", "2"}).code, 2);
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
