#include "scheduler/planner/advise.h"

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

Explanation Three() {
  Explanation explanation;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "ways { fits: true step_seconds: 10 compute_share: 0.9"
      " exposed_share: 0.05 waiting_share: 0.05"
      " step_seconds_links_within_hosts: 9.8 }"
      "ways { fits: true step_seconds: 12 compute_share: 0.5"
      " exposed_share: 0.5 waiting_share: 0"
      " step_seconds_links_within_hosts: 9 }"
      "ways { tier: DEVICE memory_bytes: 150 budget_bytes: 100"
      " step_seconds: 8 }",
      &explanation));
  return explanation;
}

TEST(AdviceOf, SaysWhatLimitsTheFirst) {
  EXPECT_EQ(AdviceOf(Three(), 0),
            "limited by compute, 90 % of the step; links of 2x: -2 %, then "
            "number 2");
}

TEST(AdviceOf, SaysWhatTheNextSpendsMoreOn) {
  EXPECT_EQ(AdviceOf(Three(), 1),
            "20 % behind the first: communication not hidden +55 %, waits for "
            "other ranks and tiers -5 %, compute -30 %; links of 2x: -25 %, "
            "then the first");
}

TEST(AdviceOf, NamesTheLinksThatMatterMost) {
  Explanation explanation = Three();
  explanation.mutable_ways(0)->set_step_seconds_links_between_hosts(5);
  explanation.mutable_ways(1)->set_step_seconds_links_between_hosts(11);
  EXPECT_EQ(AdviceOf(explanation, 0),
            "limited by compute, 90 % of the step; links between hosts of 2x: "
            "-50 %, still the first");
  EXPECT_NE(AdviceOf(explanation, 1).find("; links within hosts of 2x: -25 %"),
            std::string::npos);
}

TEST(AdviceOf, SaysWhereFasterLinksDoNotHelp) {
  Explanation explanation = Three();
  explanation.mutable_ways(0)->set_step_seconds_links_within_hosts(10);
  EXPECT_EQ(AdviceOf(explanation, 0),
            "limited by compute, 90 % of the step; that is latency: links of "
            "2x change less than 1 %");
  explanation.mutable_ways(0)->set_exposed_share(0);
  EXPECT_EQ(AdviceOf(explanation, 0), "limited by compute, 90 % of the step");
}

TEST(AdviceOf, SaysWhereTwoAreAlike) {
  Explanation explanation = Three();
  *explanation.mutable_ways(1) = explanation.ways(0);
  EXPECT_EQ(AdviceOf(explanation, 1),
            "as quick as the first; links of 2x: -2 %, still number 2");
}

TEST(LackText, SaysWhatIsMissing) {
  ExplainedWay way = Three().ways(2);
  EXPECT_EQ(LackText(way), "device memory: 1.50x of what there is");
  EXPECT_EQ(NoRemedyText(way),
            "device memory: 1.50x of what there is; neither memory.recompute "
            "nor parallelism.zero makes it fit");
  way.set_tier(NVME);
  way.set_budget_bytes(0);
  EXPECT_EQ(LackText(way), "nvme memory: there is none");
}

TEST(RemedyText, SaysWhereItWouldStand) {
  const Explanation explanation = Three();
  EXPECT_EQ(RemedyText(explanation, 2, {.change = "X (+9 %)", .longer = 0.09}),
            "device memory: 1.50x of what there is; X (+9 %) fits, then the "
            "first");
  EXPECT_EQ(RemedyText(explanation, 2, {.change = "X (+25 %)", .longer = 0.25}),
            "device memory: 1.50x of what there is; X (+25 %) fits, then the "
            "first")
      << "as long as the first, which it may be";
  EXPECT_EQ(RemedyText(explanation, 2, {.change = "X (+40 %)", .longer = 0.4}),
            "device memory: 1.50x of what there is; X (+40 %) fits, then "
            "number 2");
}

}  // namespace
}  // namespace troupe
