#include "scheduler/planner/ways.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

std::vector<std::string> Texts(const JobSpec& job) {
  const JobSpec resolved = ResolveJob(job).value();
  std::vector<std::string> texts;
  for (const JobSpec& way : WaysToShare(job)) {
    const absl::StatusOr<JobSpec> whole = ResolveJob(way);
    texts.push_back(
        FieldsOfWay(whole.ok() ? *whole : way, resolved).ShortDebugString());
  }
  return texts;
}

TEST(WaysToShare, OneRankHasOneWay) {
  EXPECT_THAT(Texts(ExampleJob({})), ElementsAre("parallelism { }"));
}

TEST(WaysToShare, HaveEachLayoutAndLevelOfZero) {
  EXPECT_THAT(
      Texts(ExampleJob({.data = 2})),
      ElementsAre("parallelism { data: 2 }", "parallelism { data: 2 zero: 1 }",
                  "parallelism { data: 2 zero: 2 }",
                  "parallelism { data: 2 zero: 3 }",
                  R"(parallelism { context: 2 context_method: "ulysses" })",
                  R"(parallelism { context: 2 context_method: "ring" })",
                  "parallelism { tensor: 2 }",
                  "parallelism { tensor: 2 sequence_parallel: true }",
                  R"(parallelism { tensor: 2 strategies { units: "blocks" )"
                  R"(batch: 2 } })",
                  R"(parallelism { tensor: 2 strategies { units: "embedding" )"
                  R"(units: "head" batch: 2 } })",
                  R"(parallelism { tensor: 2 sequence_parallel: true )"
                  R"(strategies { units: "blocks" batch: 2 } })",
                  R"(parallelism { tensor: 2 sequence_parallel: true )"
                  R"(strategies { units: "embedding" units: "head" )"
                  R"(batch: 2 } })"));
}

// The stages that have the tables, too; none whose ranks have no samples each.
TEST(WaysToShare, HaveStrategies) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2, .blocks = 4});
  job.mutable_parallelism()->set_pipeline(2);
  for (const int stage : {0, 1}) {
    EXPECT_THAT(Texts(job), Contains(absl::StrCat(
                                "parallelism { tensor: 2 strategies { stage: ",
                                stage, " batch: 2 } }")));
  }
  job.mutable_training()->set_micro_batch_size(1);
  for (const std::string& text : Texts(job)) {
    EXPECT_FALSE(absl::StrContains(text, "strategies")) << text;
  }
}

// It is a way itself, and what it would be without them is one.
TEST(WaysToShare, ShowAJobsStrategies) {
  JobSpec job = ExampleJob({});
  job.mutable_parallelism()->set_tensor(2);
  StrategySpec& batch = *job.mutable_parallelism()->add_strategies();
  batch.add_units("blocks");
  batch.set_batch(2);
  const std::vector<std::string> texts = Texts(job);
  EXPECT_EQ(texts[0], R"(parallelism { tensor: 2 strategies { units: "blocks" )"
                      R"(batch: 2 } })");
  EXPECT_EQ(std::count(texts.begin(), texts.end(), texts[0]), 1);
  EXPECT_THAT(texts, Contains("parallelism { tensor: 2 }"));
}

TEST(WaysToShare, HaveProducts) {
  EXPECT_THAT(
      Texts(ExampleJob({.data = 8})),
      IsSupersetOf(
          {R"(parallelism { context: 8 context_method: "usp" ulysses_size: 4 })",
           R"(parallelism { data: 2 tensor: 2 context: 2 context_method: "ring" })",
           R"(parallelism { data: 4 tensor: 2 sequence_parallel: true })"}));
}

// As many ranks of data as may, or none, share the experts.
TEST(WaysToShare, HaveRanksThatShareExperts) {
  JobSpec job = ExampleJob({.data = 4});
  job.mutable_model()->set_architecture("mixtral");
  job.mutable_model()->set_num_experts(4);
  EXPECT_THAT(Texts(job),
              IsSupersetOf({"parallelism { data: 4 }",
                            "parallelism { data: 4 expert: 4 }",
                            "parallelism { data: 2 tensor: 2 }",
                            "parallelism { data: 2 tensor: 2 expert: 2 }",
                            "parallelism { data: 2 tensor: 2 "
                            "sequence_parallel: true expert: 4 "
                            "expert_tensor: 1 }"}));
}

TEST(WaysToShare, HaveCubesOfRanks) {
  const std::vector<std::string> texts =
      Texts(ExampleJob({.data = 16, .micro_batch_size = 4}));
  EXPECT_THAT(
      texts,
      IsSupersetOf(
          {R"(parallelism { data: 2 tensor: 8 tensor_method: "3d" })",
           R"(parallelism { tensor: 8 context: 2 context_method: "ring" )"
           R"(tensor_method: "3d" })"}));
  EXPECT_THAT(
      texts,
      IsSupersetOf(
          {R"(parallelism { data: 4 tensor: 4 tensor_method: "2d" })",
           R"(parallelism { tensor: 16 tensor_method: "2d" })",
           R"(parallelism { data: 2 tensor: 8 tensor_method: "2.5d" )"
           R"(tensor_depth: 2 })",
           R"(parallelism { tensor: 16 tensor_method: "2.5d" tensor_depth: 4 })"}));
  for (const std::string& text : texts) {
    if (!absl::StrContains(text, "3d")) continue;
    EXPECT_TRUE(absl::StrContains(text, "tensor: 8")) << text;
  }
  // Which has no levels but these.
  JobSpec dealt = ExampleJob({.data = 16, .micro_batch_size = 4});
  dealt.mutable_parallelism()->set_zero(1);
  const std::string of_three =
      R"(parallelism { data: 2 tensor: 8 zero: 3 tensor_method: "3d" })";
  EXPECT_THAT(Texts(dealt), Contains(of_three));
  dealt.mutable_parallelism()->set_data(2);
  dealt.mutable_parallelism()->set_tensor(8);
  dealt.mutable_parallelism()->set_tensor_method("3d");
  dealt.mutable_parallelism()->set_zero(3);
  int of_job = 0;
  for (const std::string& text : Texts(dealt)) {
    of_job += absl::StrContains(text, "3d") && absl::StrContains(text, "data");
  }
  EXPECT_EQ(of_job, 2);
  JobSpec cube = ExampleJob({.micro_batch_size = 4});
  cube.mutable_parallelism()->set_tensor(8);
  cube.mutable_parallelism()->set_tensor_method("3d");
  EXPECT_EQ(Texts(cube)[0], R"(parallelism { tensor: 8 tensor_method: "3d" })");
  EXPECT_THAT(Texts(cube), Contains("parallelism { tensor: 8 }"));
}

// Those along fewer axes come first, and usp last, as only the first ones are
// planned.
TEST(WaysToShare, KeepRanksBatchAndPipelineAndNameNoneTwice) {
  JobSpec job = ExampleJob({.data = 3, .micro_batches = 4});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_tensor(4);
  std::set<std::string> seen;
  std::pair<bool, int> before;
  const std::vector<JobSpec> ways = WaysToShare(job);
  for (size_t i = 0; i < ways.size(); ++i) {
    const ParallelismSpec& parallelism = ways[i].parallelism();
    EXPECT_EQ(RanksNeeded(ways[i]), 24);
    EXPECT_EQ(parallelism.pipeline(), 2);
    EXPECT_EQ(ways[i].training().global_batch_size(), 24);
    EXPECT_TRUE(seen.insert(parallelism.SerializeAsString()).second)
        << parallelism.ShortDebugString();
    if (i < 7) continue;  // the job, and levels of ZeRO
    const std::pair<bool, int> now = {
        parallelism.has_ulysses_size(),
        (parallelism.data() > 1) + (parallelism.context() > 1) +
            (parallelism.tensor() > 1) + !parallelism.strategies().empty()};
    EXPECT_GE(now, before);
    before = now;
  }
  EXPECT_EQ(before, std::make_pair(true, 2));
}

// Of a replica with fewer sequences.
TEST(WaysToShare, MakeMicroBatchesSmallerWhereTheyMust) {
  JobSpec job = ExampleJob({.data = 2, .micro_batch_size = 4});
  job.mutable_parallelism()->set_tensor(2);
  EXPECT_THAT(Texts(job),
              Contains("parallelism { data: 4 } micro_batch_size: 2"));
}

TEST(WaysToShare, DealOverTheJobsSizeWherePossible) {
  JobSpec job = ExampleJob({.data = 4});
  job.mutable_parallelism()->set_zero(1);
  job.mutable_parallelism()->set_zero_size(2);
  const std::vector<std::string> texts = Texts(job);
  EXPECT_EQ(texts[0], "parallelism { data: 4 zero: 1 zero_size: 2 }");
  EXPECT_THAT(texts,
              IsSupersetOf({"parallelism { data: 4 zero: 3 zero_size: 2 }",
                            "parallelism { data: 2 tensor: 2 zero: 1 }",
                            "parallelism { tensor: 4 }"}));
}

}  // namespace
}  // namespace troupe
