#include "proto/plan/job_differences.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

JobSpec SomeJob() {
  JobSpec job;
  job.set_name("a");
  job.mutable_model()->set_architecture("llama");
  job.mutable_model()->set_rope_theta(10000);
  job.mutable_model()->mutable_rope_scaling()->set_factor(8);
  job.mutable_training()->set_steps(100);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_optimizer()->set_name("adamw");
  job.mutable_optimizer()->set_lr(1e-3);
  job.mutable_optimizer()->add_betas(0.9);
  job.mutable_optimizer()->add_betas(0.95);
  job.mutable_parallelism()->set_data(1);
  return job;
}

TEST(JobDifferences, OfTheSameTrainingThereAreNone) {
  JobSpec here = SomeJob();
  here.mutable_metrics()->set_directory("/elsewhere");
  JobSpec there = SomeJob();
  there.mutable_communication()->set_all_reduce("flat");
  here.mutable_communication()->set_all_reduce("two_level");
  EXPECT_THAT(JobDifferences(there, here), IsEmpty());
  here.set_name("b");
  here.mutable_parallelism()->set_data(2);
  here.mutable_training()->set_micro_batch_size(4);
  here.mutable_checkpoint()->set_resume("latest");
  EXPECT_THAT(JobDifferences(SomeJob(), here), IsEmpty());
}

TEST(JobDifferences, NamesEachFieldWithBothValues) {
  JobSpec here = SomeJob();
  here.mutable_model()->set_rope_theta(5e5);
  here.mutable_model()->clear_rope_scaling();
  here.mutable_training()->set_steps(200);
  here.mutable_optimizer()->set_name("sgd");
  here.mutable_optimizer()->clear_betas();
  EXPECT_THAT(
      JobDifferences(SomeJob(), here),
      ElementsAre("model.rope_theta is 10000 there, 500000 here",
                  "model.rope_scaling.factor is 8 there, not set here",
                  "training.steps is 100 there, 200 here",
                  "optimizer.name is \"adamw\" there, \"sgd\" here",
                  "optimizer.betas is [0.9, 0.95] there, not set here"));
}

// An older version, or an import, has not set all.
TEST(JobDifferences, WhatIsNotSetThereIsNone) {
  JobSpec there = SomeJob();
  there.clear_optimizer();
  there.mutable_model()->clear_rope_scaling();
  EXPECT_THAT(JobDifferences(there, SomeJob()), IsEmpty());
}

// Positions that are stretched now make it another model, as do those that no
// longer are.
TEST(JobDifferences, WhatNoModelHasByDefault) {
  JobSpec plain = SomeJob();
  plain.mutable_model()->clear_rope_scaling();
  JobSpec stretched = plain;
  RopeScaling& scaling = *stretched.mutable_model()->mutable_rope_scaling();
  scaling.set_type("yarn");
  scaling.set_factor(4);
  stretched.mutable_model()->set_sliding_window(64);
  EXPECT_THAT(JobDifferences(plain, stretched),
              ElementsAre("model.rope_scaling.type is none there, \"yarn\" here",
                          "model.sliding_window is none there, 64 here"));
  EXPECT_THAT(JobDifferences(stretched, plain),
              ElementsAre("model.rope_scaling.type is \"yarn\" there, none here",
                          "model.rope_scaling.factor is 4 there, not set here",
                          "model.sliding_window is 64 there, none here"));
  JobSpec scaled = stretched;
  scaled.mutable_model()->mutable_rope_scaling()->set_mscale(0.7);
  EXPECT_THAT(
      JobDifferences(stretched, scaled),
      ElementsAre("model.rope_scaling.mscale is none there, 0.7 here"));
}

TEST(JobDifferences, WhatIsFrozenOnlyThereOrHere) {
  JobSpec some = SomeJob();
  some.mutable_training()->add_freeze("*bias");
  EXPECT_THAT(JobDifferences(some, SomeJob()),
              ElementsAre("training.freeze is [\"*bias\"] there, none here"));
  EXPECT_THAT(JobDifferences(SomeJob(), some),
              ElementsAre("training.freeze is none there, [\"*bias\"] here"));
}

// A loss scale that nobody gives is found while training.
TEST(JobDifferences, ALossScaleThatIsGivenOrFound) {
  JobSpec found = SomeJob();
  found.mutable_training()->set_precision("fp16");
  JobSpec given = found;
  given.mutable_training()->set_loss_scale(1024);
  EXPECT_THAT(JobDifferences(found, given),
              ElementsAre("training.loss_scale is dynamic there, 1024 here"));
  EXPECT_THAT(JobDifferences(given, found),
              ElementsAre("training.loss_scale is 1024 there, dynamic here"));
  EXPECT_THAT(JobDifferences(found, found), IsEmpty());
  EXPECT_THAT(JobDifferences(given, given), IsEmpty());
  // Of a precision whose loss is not scaled nothing is known.
  JobSpec narrow = SomeJob();
  narrow.mutable_training()->set_precision("bf16");
  EXPECT_THAT(
      JobDifferences(narrow, given),
      ElementsAre("training.precision is \"bf16\" there, \"fp16\" here"));
}

}  // namespace
}  // namespace troupe
