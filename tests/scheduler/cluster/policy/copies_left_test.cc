#include "scheduler/cluster/policy/copies_left.h"

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/limits.h"

namespace troupe {
namespace {

// Of one rank, whose worker keeps copies of steps 4 and 5.
struct OneRank : Job {
  OneRank() {
    Axis& data = *handed->mutable_mesh()->add_axes();
    data.set_name("data");
    data.set_size(1);
    run = std::make_unique<Run>(1, *handed, Limits());
    auto hand_out = std::make_shared<HandOut>();
    hand_out->plan = handed;
    run->handed = hand_out;
    run->phase = phase::AwaitPlaces();
    run->ranks[0].state = RankSeat::kHeld;
    for (const int64_t step : {4, 5}) {
      KeptCopy& copy = run->ranks[0].kept.emplace_back();
      copy.mutable_state()->set_step(step);
      copy.set_own(true);
    }
  }
  void HasCheckpoint(int64_t step) { status.add_checkpoints()->set_step(step); }

  const std::shared_ptr<Plan> handed = std::make_shared<Plan>();
};

TEST(CopiesLeft, AreSavedUnlessACheckpointIsAsNew) {
  OneRank job;
  EXPECT_EQ(NewestCopies(*job.run)->state().step(), 5);
  EXPECT_EQ(CopiesToSave(job)->state().step(), 5);
  EXPECT_TRUE(LosesSteps(job, {0}));
  EXPECT_FALSE(LosesSteps(job, {}));
  job.HasCheckpoint(4);
  EXPECT_TRUE(CopiesToSave(job).has_value());
  job.HasCheckpoint(5);
  EXPECT_FALSE(CopiesToSave(job).has_value());
  EXPECT_TRUE(NewestCopies(*job.run).has_value());
  EXPECT_FALSE(LosesSteps(job, {0}));
}

TEST(CopiesLeft, OfADoubtfulStepAreNone) {
  OneRank job;
  job.run->wrong_since = 5;
  EXPECT_EQ(NewestCopies(*job.run)->state().step(), 4);
}

TEST(CopiesLeft, ThatCannotBeSavedAreNotSaved) {
  OneRank job;
  EXPECT_FALSE(CannotBeSaved(job));
  job.run->between()->unsavable_step = 4;
  EXPECT_FALSE(CannotBeSaved(job)) << "those of step 5 may be";
  job.run->between()->unsavable_step = 5;
  EXPECT_TRUE(CannotBeSaved(job));
  EXPECT_FALSE(CopiesToSave(job).has_value());
  EXPECT_TRUE(LosesSteps(job, {0})) << "they are there still";
  job.HasCheckpoint(5);
  EXPECT_FALSE(CannotBeSaved(job));
}

// A worker that leaves keeps them until it is stored that they are a
// checkpoint, or the store cannot.
TEST(CopiesLeft, AreAwaitedWhileTheyAreCommitted) {
  OneRank job;
  using Saving = phase::SavingCopies;
  const auto awaits = [&job](Saving::Stage stage, bool leave) {
    Saving saving;
    saving.stage = stage;
    saving.state.set_step(5);
    job.run->phase = saving;
    return AwaitsCommit(*job.run, leave);
  };
  EXPECT_FALSE(awaits(Saving::kWriting, true));
  EXPECT_FALSE(awaits(Saving::kCommitting, true)) << "they are in memory, too";
  EXPECT_TRUE(awaits(Saving::kStoring, true));
  EXPECT_FALSE(awaits(Saving::kStoring, false));
  EXPECT_FALSE(awaits(Saving::kRefused, true));
  job.run->ranks[0].kept.clear();
  EXPECT_TRUE(awaits(Saving::kCommitting, false)) << "nothing else is left";
}

}  // namespace
}  // namespace troupe
