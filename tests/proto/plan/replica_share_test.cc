#include "proto/plan/replica_share.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "proto/plan/roles.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobSpec UnevenJob() {
  JobSpec job = ExampleJob({.data = 4, .micro_batches = 2});
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(2);
  for (const int count : {1, 3, 1, 3}) parallelism.add_micro_batches(count);
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(5);
  job.mutable_training()->set_validation_sequences(9);
  return job;
}

TEST(ReplicaShare, SamplesGoInTheOrderOfReplicas) {
  const Plan plan = ExamplePlan(UnevenJob());
  const Derived& derived = plan.derived();
  EXPECT_EQ(derived.micro_batches(), 3);
  // Five micro-batches of two, of eight: 5/8 and 15/8, rounded up.
  EXPECT_THAT(derived.replica_validation_micro_batches(),
              ElementsAre(1, 2, 1, 2));
  int64_t first = 0;
  for (const int replica : {0, 1, 2, 3}) {
    const ReplicaShare share = ShareOf(derived, Program::TRAIN, replica);
    EXPECT_EQ(share.first, first);
    EXPECT_EQ(share.count, replica % 2 == 0 ? 1 : 3);
    first += share.count;
  }
  EXPECT_EQ(ShareOf(derived, Program::VALIDATE, 3).first, 4);
  EXPECT_THAT(ReplicaKinds(plan),
              ElementsAre(ElementsAre(1, 3), ElementsAre(0, 2)));
  // Kinds of replicas have roles of their own.
  ASSERT_EQ(plan.roles_size(), 4);
  EXPECT_EQ(RoleText(plan.roles(1)), "pipeline 1 data 1,3");
  EXPECT_EQ(RoleText(plan.roles(2)), "pipeline 0 data 0,2");
  EXPECT_THAT(RanksOf(plan.mesh(), plan.roles(1)), ElementsAre(5, 7));
}

// Those with slices of other sizes have roles of their own, too.
TEST(ReplicaShare, KindsAreAlsoOfSlices) {
  JobSpec job = UnevenJob();
  job.mutable_parallelism()->set_zero(1);
  for (const int weight : {2, 1, 5, 1}) {
    job.mutable_parallelism()->add_zero_weights(weight);
  }
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(ReplicaKinds(plan),
              ElementsAre(ElementsAre(1, 3), ElementsAre(2), ElementsAre(0)));
  EXPECT_EQ(plan.roles_size(), 6);
}

TEST(ReplicaShare, EqualNumbersAreThePlanOfNone) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  const Plan even = ExamplePlan(job);
  job.mutable_parallelism()->add_micro_batches(2);
  job.mutable_parallelism()->add_micro_batches(2);
  const Plan given = ExamplePlan(job);
  EXPECT_TRUE(given.derived().replica_micro_batches().empty());
  EXPECT_EQ(given.roles_size(), even.roles_size());
  EXPECT_THAT(ReplicaKinds(even), ElementsAre(ElementsAre()));
  EXPECT_EQ(ShareOf(even.derived(), Program::TRAIN, 1).first, 2);
}

struct Fault {
  void (*plant)(Plan& plan);
  const char* message;
};

// Numbers that are not those of the programs, or of the batch.
TEST(ReplicaShare, FindsFaults) {
  const Plan plan = ExamplePlan(UnevenJob());
  ASSERT_TRUE(CheckPrograms(plan).ok());
  const std::vector<Fault> faults = {
      {[](Plan& p) { p.mutable_derived()->set_replica_micro_batches(0, 2); },
       "are 18 in a step, and the global batch has 16"},
      // As many in all, each within what its kind has.
      {[](Plan& p) {
         p.mutable_derived()->set_replica_micro_batches(0, 3);
         p.mutable_derived()->set_replica_micro_batches(1, 1);
       },
       "there are 1 micro-batches"},
      // And those of a kind, of which the first is right.
      {[](Plan& p) {
         p.mutable_derived()->set_replica_micro_batches(2, 3);
         p.mutable_derived()->set_replica_micro_batches(3, 1);
       },
       "missing for micro-batch 1"},
      {[](Plan& p) {
         p.mutable_derived()->set_replica_micro_batches(0, 0);
         p.mutable_derived()->set_replica_micro_batches(2, 2);
       },
       "[0, 3, 2, 3] are no micro-batches of 4 replicas, at least one each"},
      {[](Plan& p) {
         p.mutable_derived()->mutable_replica_micro_batches()->RemoveLast();
       },
       "[1, 3, 1] are no micro-batches of 4 replicas"},
      {[](Plan& p) { p.mutable_derived()->set_micro_batches(4); },
       "at least one each and 4 at most"},
      {[](Plan& p) {
         p.mutable_derived()->set_replica_validation_micro_batches(2, 2);
       },
       "missing for micro-batch 1"},
      {[](Plan& p) {
         p.mutable_derived()->clear_replica_micro_batches();
         p.mutable_derived()->clear_replica_validation_micro_batches();
       },
       "missing for micro-batch"},
      // The two kinds swap their replicas.
      {[](Plan& p) {
         for (Role& role : *p.mutable_roles()) {
           for (Role::Place& at : *role.mutable_at()) {
             if (at.axis() == "data") at.set_place(at.place() ^ 1);
           }
         }
       },
       "there are 1 micro-batches"},
      {[](Plan& p) { p.mutable_roles(0)->mutable_at(2)->set_place(1); },
       "is named twice"},
      {[](Plan& p) { p.mutable_roles(0)->mutable_at(2)->set_place(2); },
       "has no role"},
  };
  for (const Fault& fault : faults) {
    Plan broken = plan;
    fault.plant(broken);
    EXPECT_THAT(std::string(CheckPrograms(broken).message()),
                HasSubstr(fault.message));
  }
}

}  // namespace
}  // namespace troupe
