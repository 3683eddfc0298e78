#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class JobsTest : public CommandTestBase {};

TEST_F(JobsTest, ListsThem) {
  scheduler_.jobs[1].mutable_status()->mutable_last_step()->set_step(3);
  scheduler_.jobs[1].mutable_status()->mutable_last_step()->set_loss(2.5);
  scheduler_.jobs[1].mutable_status()->set_steps_done(3);
  scheduler_.jobs[1].mutable_status()->set_restarts(2);
  EXPECT_EQ(Ask({"jobs"}).out,
            "ID  NAME  STATE      STEPS    LOSS  TOK/S  RESTARTS  SUBMITTED  "
            "REASON\n"
            " 1  demo  SUCCEEDED    0/4       -      -         -  -\n"
            " 2  demo  RUNNING      3/4  2.5000      0         2  -\n");
  EXPECT_NE(Ask({"jobs", "--json"}).out.find("\"state\": \"RUNNING\""),
            std::string::npos);
}

}  // namespace
}  // namespace troupe
