#include "proto/plan/copy_losses.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/copies.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Hosts = std::vector<std::string>;

// Of a pipeline of two, each with `data` replicas, alike or in slices.
Plan TwoStages(int data, int zero) {
  JobSpec job = ExampleJob({.data = data});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_zero(zero);
  job.mutable_recovery();
  return ExamplePlan(job);
}

// Replicas of a stage are neighbours, as ranks of a host are.
TEST(CopyLosses, ReplicasOnOneHostAreLostWithIt) {
  const Plan plan = TwoStages(2, 0);
  const Hosts hosts = {"a", "a", "b", "b"};
  EXPECT_FALSE(NeedsMirrors(plan));
  EXPECT_THAT(HostsNotOutlived(plan, hosts, false), ElementsAre("a", "b"));
  EXPECT_THAT(HostsNotOutlived(plan, hosts, true), IsEmpty());
  EXPECT_TRUE(WantsMirrors(plan, hosts));
  EXPECT_EQ(LossesOutlived(plan, hosts, true),
            "the loss of any one worker or host");
}

TEST(CopyLosses, ReplicasOnSeveralNeedNoMirrors) {
  const Plan plan = TwoStages(2, 0);
  const Hosts hosts = {"a", "b", "a", "b"};
  EXPECT_FALSE(WantsMirrors(plan, hosts));
  EXPECT_EQ(LossesOutlived(plan, hosts, false),
            "the loss of any one worker or host");
}

TEST(CopyLosses, OnOneHostMirrorsAreForWorkersOnly) {
  const Hosts hosts(4, "a");
  EXPECT_FALSE(WantsMirrors(TwoStages(2, 0), hosts));
  EXPECT_TRUE(WantsMirrors(TwoStages(2, 1), hosts));
  EXPECT_EQ(LossesOutlived(TwoStages(2, 1), hosts, true),
            "the loss of any one worker, but not of their only host");
}

TEST(CopyLosses, HostsAreNotAlwaysKnown) {
  EXPECT_FALSE(WantsMirrors(TwoStages(2, 0), {}));
  EXPECT_TRUE(WantsMirrors(TwoStages(2, 1), {}));
  EXPECT_EQ(LossesOutlived(TwoStages(2, 0), {}, false),
            "the loss of any one worker");
}

// More than half of all ranks have no place elsewhere for all their copies.
TEST(CopyLosses, AHostWithMostOfTheRanksIsNamed) {
  const Plan plan = TwoStages(2, 1);
  const Hosts hosts = {"a", "a", "a", "b"};
  EXPECT_THAT(HostsNotOutlived(plan, hosts, true), ElementsAre("a"));
  EXPECT_EQ(LossesOutlived(plan, hosts, true),
            "the loss of any one worker, but not of host a");
}

// Three places on an axis, six ranks on two hosts: half of all ranks further on
// is another host, half of the axis is not.
TEST(CopyLosses, MirrorsAreHalfOfAllRanksAway) {
  JobSpec job = ExampleJob({.data = 3});
  job.mutable_parallelism()->set_tensor(2);
  job.mutable_parallelism()->set_zero(1);
  job.mutable_recovery();
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(HostsNotOutlived(plan, Hosts{"a", "a", "a", "b", "b", "b"}, true),
              IsEmpty());
}

}  // namespace
}  // namespace troupe
