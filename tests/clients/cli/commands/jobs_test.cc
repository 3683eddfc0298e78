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

TEST_F(JobsTest, SaysWhichAreNotSaved) {
  JobStatus& status = *scheduler_.jobs[1].mutable_status();
  status.set_unsaved("w1 (rank 1): /c: write: ENOSPC");
  status.set_unsaved_step(3000);
  EXPECT_NE(Ask({"jobs"}).out.find(
                "job 2 (demo) UNSAVED since -: the checkpoint of step 3000 "
                "could not be written: w1 (rank 1): /c: write: ENOSPC\n"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe
