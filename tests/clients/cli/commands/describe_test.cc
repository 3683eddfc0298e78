#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class DescribeTest : public CommandTestBase {
 protected:
  DescribeTest() {
    JobDescription& job = scheduler_.jobs[0];
    job.mutable_plan()->set_fingerprint("abc");
    job.mutable_plan()->mutable_job()->set_name("demo");
    for (int i = 1; i <= 9; ++i) job.add_steps()->set_step(i);
    job.add_events()->set_text("queued");
    job.mutable_status()->add_workers("worker-7");
    job.mutable_status()->add_checkpoints()->set_path("/c/step-9");
  }
};

TEST_F(DescribeTest, ShowsAllThatIsKnown) {
  const CommandOutcome outcome = Ask({"describe", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"SUCCEEDED", "worker-7", "/c/step-9", "queued",
                           "step 9/4", "fingerprint abc", "name: demo"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(outcome.out.find("step 4/4"), std::string::npos)
      << "the last five steps only";
}

TEST_F(DescribeTest, PrintsJson) {
  const auto json = nlohmann::json::parse(Ask({"describe", "1", "--json"}).out);
  EXPECT_EQ(json["state"], "SUCCEEDED");
  EXPECT_EQ(json["plan"]["fingerprint"], "abc");
  EXPECT_EQ(json["steps"].size(), 9);
  EXPECT_EQ(Ask({"describe", "9", "--json"}).code, 1);
}

}  // namespace
}  // namespace troupe
