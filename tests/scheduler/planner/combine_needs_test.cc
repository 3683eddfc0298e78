#include "scheduler/planner/combine_needs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planner/memory_settings.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

// On the device, the host, the disk.
TEST(CombineNeeds, MultipliesWhatIsLeftWhereItThenLies) {
  const MemoryNeed without = {{{"moments", {100, 0, 0}}, {"other", {7, 0, 0}}}};
  const MemoryNeed dealt = {{{"moments", {50, 0, 0}}, {"other", {7, 0, 0}}}};
  const MemoryNeed moved = {{{"moments", {0, 100, 0}},
                             {"other", {7, 0, 0}},
                             {"copies", {10, 20, 0}}}};
  EXPECT_EQ(Combine(without, {}), without);
  EXPECT_THAT(SumOf(Combine(without, {&dealt})), ElementsAre(57, 0, 0));
  EXPECT_THAT(SumOf(Combine(without, {&moved})), ElementsAre(17, 120, 0));
  EXPECT_THAT(SumOf(Combine(without, {&dealt, &moved})),
              ElementsAre(17, 70, 0));
  const MemoryNeed gone = {{{"moments", {0, 0, 0}}, {"other", {7, 0, 0}}}};
  EXPECT_THAT(SumOf(Combine(without, {&gone, &moved})), ElementsAre(17, 20, 0));
}

// As the plan with both, where nothing but the moments is changed.
TEST(CombineNeeds, IsWhatAPlanNeeds) {
  JobSpec job = Job(MemorySpec());
  job.mutable_parallelism()->set_data(2);
  const auto workers = Workers({}, 2);
  const auto need = [&](const char* optimizer, int zero) {
    JobSpec changed = job;
    *changed.mutable_memory() = SpecOf({.optimizer = optimizer});
    changed.mutable_parallelism()->set_zero(zero);
    return NeedOf(ExamplePlan(changed), workers);
  };
  const MemoryNeed without = need("device", 0);
  const MemoryNeed dealt = need("device", 1);
  const MemoryNeed moved = need("nvme", 0);
  const auto guess = Combine(without, {&dealt, &moved});
  const auto actual = need("nvme", 1);
  const char* const moments = "optimizer_moments";
  EXPECT_NEAR(guess[0].at(moments)[2], actual[0].at(moments)[2],
              0.2 * actual[0].at(moments)[2]);  // whole blocks
  for (const double bytes : SumOf(guess)) EXPECT_GE(bytes, 0);
}

}  // namespace
}  // namespace troupe
