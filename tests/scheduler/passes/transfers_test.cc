#include "scheduler/passes/transfers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/synthetic_job.h"

namespace troupe {
namespace {

// "0>1 u0 m0" of every activation, in order.
std::string Activations(const JobSpec& job) {
  const Draft draft = ExampleDraft(job, "");
  std::string text;
  for (const StageTransfer& t :
       TransfersOf(draft, draft.compute_order, draft.compute_order,
                   DryRun(draft, draft.compute_order))) {
    if (t.gradient) continue;
    absl::StrAppend(&text, text.empty() ? "" : " | ", t.from, ">", t.to, " u",
                    t.unit, " m", t.micro_batch);
  }
  return text;
}

TEST(Transfers, StandInTheOrderOfTime) {
  EXPECT_EQ(Activations(SyntheticJob(
                {.pipeline = 2, .schedule = "gpipe", .micro_batches = 3})),
            "0>1 u0 m0 | 0>1 u0 m1 | 0>1 u0 m2");
}

// A rank receives the next micro-batch before it sends the last one on.
TEST(Transfers, EachRankIsALittleBehindTheOneBefore) {
  EXPECT_EQ(Activations(SyntheticJob(
                {.pipeline = 4, .schedule = "gpipe", .micro_batches = 3})),
            "0>1 u0 m0 | 0>1 u0 m1 | 1>2 u1 m0 | 0>1 u0 m2 | 1>2 u1 m1 | "
            "2>3 u2 m0 | 1>2 u1 m2 | 2>3 u2 m1 | 2>3 u2 m2");
}

// The two middle stages of a V are on one rank.
TEST(Transfers, NothingMovesWithinARank) {
  const std::string text = Activations(SyntheticJob(
      {.pipeline = 2, .schedule = "zb_v", .micro_batches = 4, .units = 4}));
  EXPECT_EQ(text.find("1>1"), std::string::npos) << text;
  EXPECT_NE(text.find("1>0 u2"), std::string::npos) << text;
}

}  // namespace
}  // namespace troupe
