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

TEST_F(DescribeTest, ShowsWaitsForTiersBesideThosePredicted) {
  EXPECT_EQ(Ask({"describe", "1"}).out.find("waited"), std::string::npos);
  JobDescription& job = scheduler_.jobs[0];
  StepRecord& last = *job.mutable_status()->mutable_last_step();
  last.set_step(9);
  TierTraffic& measured = *last.add_tiers();
  measured.set_tier(NVME);
  measured.set_waited_seconds(0.25);
  EXPECT_NE(Ask({"describe", "1"})
                .out.find("  nvme       waited 250 ms in step "
                          "9\n"),
            std::string::npos);
  for (const double waited : {0.1, 0.125}) {
    TierTraffic& predicted =
        *job.mutable_plan()->mutable_prediction()->add_ranks()->add_tiers();
    predicted.set_tier(NVME);
    predicted.set_waited_seconds(waited);
  }
  const std::string shown = Ask({"describe", "1"}).out;
  EXPECT_NE(shown.find("  nvme       waited 250 ms in step 9, predicted "
                       "125 ms\n"),
            std::string::npos)
      << shown;
}

TEST_F(DescribeTest, SaysThatItIsNotSaved) {
  EXPECT_EQ(Ask({"describe", "1"}).out.find("UNSAVED"), std::string::npos);
  scheduler_.jobs[0].mutable_status()->set_unsaved("w1 (rank 1): ENOSPC");
  EXPECT_NE(Ask({"describe", "1"}).out.find("UNSAVED since"),
            std::string::npos);
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
