#include "scheduler/cluster/step_deadline.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

const Limits kLimits = {.late_min = absl::Seconds(3),
                        .late_first_min = absl::Seconds(20),
                        .late_steps = 4};

TEST(StepDeadline, IsSeveralTimesThePrediction) {
  const StepDeadline deadline(absl::Seconds(10), kLimits);
  EXPECT_EQ(deadline.expected(), absl::Seconds(10));
  EXPECT_EQ(deadline.late_after(), absl::Seconds(40));
}

TEST(StepDeadline, TheFirstStepHasMoreTime) {
  StepDeadline deadline(absl::Milliseconds(10), kLimits);
  EXPECT_EQ(deadline.late_after(), absl::Seconds(20));
  deadline.Add(absl::Milliseconds(10));
  EXPECT_EQ(deadline.late_after(), absl::Seconds(3));
}

TEST(StepDeadline, WhatStepsTookCountsWhereItIsMore) {
  StepDeadline deadline(absl::Seconds(1), kLimits);
  deadline.Add(absl::Seconds(100));
  deadline.Add(absl::Seconds(5));
  deadline.Add(absl::Seconds(5));
  EXPECT_EQ(deadline.expected(), absl::Seconds(5)) << "the median";
  EXPECT_EQ(deadline.late_after(), absl::Seconds(20));
  for (int i = 0; i < StepDeadline::kStepsKept; ++i) {
    deadline.Add(absl::Milliseconds(100));
  }
  EXPECT_EQ(deadline.expected(), absl::Seconds(1)) << "of the last ones";
}

}  // namespace
}  // namespace troupe
