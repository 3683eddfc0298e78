#include "proto/plan/lr_schedule.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

JobSpec Job(const std::string& name, int64_t steps, int64_t warmup) {
  JobSpec job;
  job.mutable_training()->set_steps(steps);
  job.mutable_optimizer()->set_lr(0.8);
  job.mutable_lr_scheduler()->set_name(name);
  job.mutable_lr_scheduler()->set_warmup_steps(warmup);
  job.mutable_lr_scheduler()->set_min_lr(name == "constant" ? 0 : 0.2);
  job.mutable_lr_scheduler()->set_decay_steps(name == "wsd" ? 10 : 0);
  return job;
}

TEST(LearningRate, WarmsUpLinearlyFromZero) {
  for (const char* name : {"cosine", "linear", "constant", "wsd"}) {
    const JobSpec job = Job(name, 100, 20);
    EXPECT_DOUBLE_EQ(LearningRate(job, 1), 0.8 / 20) << name;
    EXPECT_DOUBLE_EQ(LearningRate(job, 10), 0.4) << name;
    EXPECT_DOUBLE_EQ(LearningRate(job, 20), 0.8) << name;
  }
}

TEST(LearningRate, ConstantStays) {
  const JobSpec job = Job("constant", 100, 0);
  EXPECT_EQ(LearningRate(job, 1), 0.8);
  EXPECT_EQ(LearningRate(job, 100), 0.8);
}

TEST(LearningRate, CosineIsHalfWayInTheMiddle) {
  const JobSpec job = Job("cosine", 100, 20);
  EXPECT_DOUBLE_EQ(LearningRate(job, 60), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(job, 40),
                   0.2 + 0.3 * (1 + std::sqrt(0.5)));  // a quarter of the way
  EXPECT_EQ(LearningRate(job, 100), 0.2);
}

TEST(LearningRate, LinearFallsEvenly) {
  const JobSpec job = Job("linear", 100, 20);
  EXPECT_DOUBLE_EQ(LearningRate(job, 40), 0.8 - 0.6 / 4);
  EXPECT_DOUBLE_EQ(LearningRate(job, 60), 0.5);
  EXPECT_EQ(LearningRate(job, 100), 0.2);
}

TEST(LearningRate, WsdDecaysAtTheEnd) {
  const JobSpec job = Job("wsd", 100, 20);
  EXPECT_EQ(LearningRate(job, 21), 0.8);
  EXPECT_EQ(LearningRate(job, 90), 0.8);
  EXPECT_DOUBLE_EQ(LearningRate(job, 95), 0.5);
  EXPECT_EQ(LearningRate(job, 100), 0.2);
}

TEST(LearningRate, NeverLeavesItsBounds) {
  for (const char* name : {"cosine", "linear", "constant", "wsd"}) {
    for (const int64_t warmup : {0, 1, 30, 40}) {
      const JobSpec job = Job(name, 40, warmup);
      double before = 0;
      for (int64_t step = 1; step <= 40; ++step) {
        const double lr = LearningRate(job, step);
        EXPECT_GT(lr, 0) << name;
        EXPECT_LE(lr, 0.8) << name;
        if (step <= warmup) {
          EXPECT_GT(lr, before) << name << " step " << step;
        } else if (step > 1 && warmup < 30) {
          EXPECT_GE(lr, 0.2) << name << " step " << step;
        }
        before = lr;
      }
    }
  }
}

TEST(LearningRate, StepsOutsideTakeTheNearest) {
  const JobSpec job = Job("linear", 100, 20);
  EXPECT_EQ(LearningRate(job, 0), LearningRate(job, 1));
  EXPECT_EQ(LearningRate(job, 1000), LearningRate(job, 100));
}

TEST(LearningRate, AllStepsMayBeWarmup) {
  const JobSpec job = Job("cosine", 8, 8);
  EXPECT_DOUBLE_EQ(LearningRate(job, 4), 0.4);
  EXPECT_DOUBLE_EQ(LearningRate(job, 8), 0.8);
}

}  // namespace
}  // namespace troupe
