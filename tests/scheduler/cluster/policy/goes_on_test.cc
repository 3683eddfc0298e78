#include "scheduler/cluster/policy/goes_on.h"

#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/limits.h"

namespace troupe {
namespace {

// With `recovery` and a directory, in an attempt that has failed.
struct FailedJob : Job {
  FailedJob() {
    auto spec_of_plan = std::make_shared<Plan>();
    spec_of_plan->mutable_job()->mutable_recovery()->set_restarts(1);
    plan = spec_of_plan;
    spec.mutable_checkpoint()->set_directory("/c");
    run = std::make_unique<Run>(1, *plan, Limits());
    run->handed = std::make_shared<HandOut>();
    run->phase = phase::Stopping({.blame = Blame::kRank});
  }
};

TEST(GoesOn, WithItsProgramsInItsPlacesOrElsewhere) {
  FailedJob job;
  EXPECT_TRUE(MayRecover(job));
  EXPECT_TRUE(MayMove(job));
  EXPECT_FALSE(MayBeginAgain(job));
  job.spec.clear_checkpoint();
  EXPECT_FALSE(MayMove(job));
}

// An earlier scheduler handed them out.
TEST(GoesOn, WithoutItsProgramsItIsPlannedAnew) {
  FailedJob job;
  job.run->handed = nullptr;
  EXPECT_FALSE(MayRecover(job));
  EXPECT_FALSE(MayMove(job));
  EXPECT_FALSE(MayBeginAgain(job)) << "they may still come back";
  job.run->restored = absl::UnixEpoch();
  EXPECT_TRUE(MayBeginAgain(job));
}

TEST(GoesOn, NotWhereItWasCancelledOrHasADefect) {
  FailedJob cancelled;
  cancelled.cancelled = true;
  FailedJob given_up;
  given_up.status.set_intent(INTENT_CANCEL);
  FailedJob defective;
  defective.defect = "it is in no phase of the table";
  for (const Job* job : {&cancelled, &given_up, &defective}) {
    EXPECT_FALSE(MayRecover(*job));
    EXPECT_FALSE(MayMove(*job));
  }
}

TEST(GoesOn, WithoutARestartOnlyWhereItCostsNone) {
  FailedJob job;
  job.status.set_restarts(1);
  EXPECT_FALSE(MayRecover(job));
  job.run->phase = phase::Storing{};
  EXPECT_TRUE(MayRecover(job)) << "nobody has heard of it";
}

}  // namespace
}  // namespace troupe
