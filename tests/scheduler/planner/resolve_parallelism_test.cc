#include "scheduler/planner/resolve_parallelism.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ResolveParallelism, FillsInDefaults) {
  ParallelismSpec parallelism;
  ASSERT_TRUE(ResolveParallelism({}, parallelism).ok());
  EXPECT_EQ(parallelism.data(), 1);
  EXPECT_EQ(parallelism.pipeline(), 1);
  EXPECT_EQ(parallelism.pipeline_schedule(), "1f1b");
  EXPECT_EQ(parallelism.virtual_stages(), 1);
  EXPECT_FALSE(parallelism.vertical_sync());
  EXPECT_EQ(parallelism.context(), 1);
  EXPECT_FALSE(parallelism.has_context_method());
}

// What `memory: auto` may choose stays open, unless something is said of it.
TEST(ResolveParallelism, LeavesZeroToMemoryAuto) {
  MemorySpec memory;
  memory.set_mode("auto");
  ParallelismSpec open;
  ASSERT_TRUE(ResolveParallelism(memory, open).ok());
  EXPECT_FALSE(open.has_zero());
  ParallelismSpec given;
  given.set_zero(0);
  ASSERT_TRUE(ResolveParallelism(memory, given).ok());
  EXPECT_TRUE(given.has_zero());
  EXPECT_EQ(given.zero_size(), 1);
  ParallelismSpec of_use;
  of_use.set_reshard_after_forward(false);
  ASSERT_TRUE(ResolveParallelism(memory, of_use).ok());
  EXPECT_TRUE(of_use.has_zero());
  ParallelismSpec size;
  size.set_data(2);
  size.set_zero_size(2);
  EXPECT_THAT(std::string(ResolveParallelism(memory, size).message()),
              StartsWith("parallelism.zero_size: "));
}

TEST(ResolveParallelism, SequencesAreCutAsUlyssesDoes) {
  ParallelismSpec parallelism;
  parallelism.set_context(4);
  ASSERT_TRUE(ResolveParallelism({}, parallelism).ok());
  EXPECT_EQ(parallelism.context_method(), "ulysses");
}

// As many as the schedule needs.
TEST(ResolveParallelism, VirtualStagesFollowTheSchedule) {
  ParallelismSpec parallelism;
  parallelism.set_pipeline(2);
  parallelism.set_pipeline_schedule("interleaved_1f1b");
  ASSERT_TRUE(ResolveParallelism({}, parallelism).ok());
  EXPECT_EQ(parallelism.virtual_stages(), 2);
}

TEST(ResolveParallelism, SlicesAreDealtOverSequencesRanksFirst) {
  const auto message = [](int zero_size) {
    ParallelismSpec parallelism;
    parallelism.set_data(6);
    parallelism.set_context(4);
    parallelism.set_zero(3);
    if (zero_size > 0) parallelism.set_zero_size(zero_size);
    const absl::Status status = ResolveParallelism({}, parallelism);
    return status.ok() ? absl::StrCat(parallelism.zero_size())
                       : std::string(status.message());
  };
  EXPECT_EQ(message(0), "24");
  for (const int fits : {1, 2, 4, 8, 12, 24}) {
    EXPECT_EQ(message(fits), absl::StrCat(fits));
  }
  EXPECT_THAT(message(3), HasSubstr("3 does not divide the 4 ranks of "
                                    "parallelism.context; use 2 or 4"));
  EXPECT_THAT(message(6), HasSubstr("6 is no multiple of the 4 ranks of "
                                    "parallelism.context; use 4 or 8"));
  EXPECT_THAT(message(16), HasSubstr("16 are 4 times the ranks of "
                                     "parallelism.context, which does not "
                                     "divide the 6 replicas of "
                                     "parallelism.data; use 12 or 24"));
  EXPECT_THAT(message(25), HasSubstr("is out of range"));
}

TEST(ResolveParallelism, Refuses) {
  const auto message = [](void (*change)(ParallelismSpec&)) {
    ParallelismSpec parallelism;
    change(parallelism);
    return std::string(ResolveParallelism({}, parallelism).message());
  };
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_pipeline(0); }),
              StartsWith("parallelism.pipeline: 0 is out of range"));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_data(-1); }),
              StartsWith("parallelism.data: -1 is out of range"));
  EXPECT_THAT(
      message([](ParallelismSpec& p) { p.set_pipeline_schedule("1F1B"); }),
      AllOf(StartsWith("parallelism.pipeline_schedule: there is no \"1F1B\""),
            HasSubstr("1f1b")));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_virtual_stages(0); }),
              StartsWith("parallelism.virtual_stages: 0 is out of range"));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_context(0); }),
              StartsWith("parallelism.context: 0 is out of range"));
  EXPECT_THAT(
      message([](ParallelismSpec& p) { p.set_context_method("ulysses"); }),
      StartsWith("parallelism.context_method: says how the ranks of "
                 "parallelism.context work together, which is 1"));
  EXPECT_THAT(message([](ParallelismSpec& p) {
                p.set_context(2);
                p.set_context_method("rings");
              }),
              AllOf(StartsWith("parallelism.context_method: there is no "
                               "\"rings\""),
                    HasSubstr("ulysses")));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_tensor_method("3d"); }),
              StartsWith("parallelism.tensor_method: says how the ranks of "
                         "parallelism.tensor share a unit, which is 1; use 8"));
  EXPECT_THAT(
      message([](ParallelismSpec& p) {
        p.set_tensor(12);
        p.set_tensor_method("3d");
      }),
      AllOf(StartsWith("parallelism.tensor: 12 ranks are no cube"),
            HasSubstr("use 8 or 27")));
  EXPECT_THAT(
      message([](ParallelismSpec& p) {
        p.set_tensor(4);
        p.set_tensor_method("3d");
      }),
      HasSubstr("use 8 or 27"));
  EXPECT_THAT(message([](ParallelismSpec& p) {
                p.set_tensor(8);
                p.set_tensor_method("3d");
                p.set_sequence_parallel(true);
              }),
              StartsWith("parallelism.sequence_parallel: cuts what "
                         "tensor_method: 1d leaves whole"));
  for (const int zero : {1, 2}) {
    ParallelismSpec parallelism;
    parallelism.set_tensor(8);
    parallelism.set_tensor_method("3d");
    parallelism.set_data(2);
    parallelism.set_zero(zero);
    EXPECT_THAT(std::string(ResolveParallelism({}, parallelism).message()),
                AllOf(StartsWith("parallelism.zero: "),
                      HasSubstr("use 0, or 3")));
    parallelism.set_zero(3);
    EXPECT_TRUE(ResolveParallelism({}, parallelism).ok());
  }
  EXPECT_THAT(message([](ParallelismSpec& p) {
                p.set_tensor(8);
                p.set_tensor_method("3d");
                p.set_pipeline(2);
                p.set_pipeline_schedule("pipedream");
              }),
              AllOf(StartsWith("parallelism.tensor_method: 3d does not go "
                               "with pipedream"),
                    HasSubstr("tensor_method: 1d")));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_vertical_sync(true); }),
              StartsWith("parallelism.vertical_sync: is for pipedream, not "
                         "1f1b; leave it out"));
}

}  // namespace
}  // namespace troupe
