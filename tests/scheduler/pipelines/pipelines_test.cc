#include "scheduler/pipelines/pipelines.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Pipelines, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    EXPECT_TRUE(names.emplace(pipeline.name).second) << pipeline.name;
    EXPECT_EQ(FindPipeline(pipeline.name)->name, pipeline.name);
    EXPECT_FALSE(pipeline.summary.empty());
  }
}

TEST(Pipelines, EveryScheduleRunsOnOneRank) {
  for (const Pipeline& pipeline : Pipelines()) {
    const int stages = pipeline.default_virtual_stages;
    const auto order =
        pipeline.order({.micro_batches = 2, .virtual_stages = stages});
    ASSERT_TRUE(order.ok()) << pipeline.name;
    EXPECT_EQ(order->size(), 1) << pipeline.name;
    EXPECT_EQ(order->front().size(), 6 * stages) << pipeline.name;
  }
}

TEST(Pipelines, UnknownNames) {
  EXPECT_EQ(FindPipeline("niave").status().message(),
            "there is no pipeline schedule \"niave\"; did you mean \"naive\"?");
  EXPECT_EQ(FindPipeline("zigzag").status().message(),
            "there is no pipeline schedule \"zigzag\"; there are: naive, "
            "gpipe, 1f1b");
}

}  // namespace
}  // namespace troupe
