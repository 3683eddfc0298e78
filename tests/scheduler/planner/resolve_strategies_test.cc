// What ranks may do for some units only: defaults, and what is refused before
// and after the stages are known.
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

JobSpec JobOf(const std::string& parallelism, bool tied = false) {
  JobSpec job = ExampleJob({.micro_batches = 2, .micro_batch_size = 4});
  job.mutable_model()->set_tie_word_embeddings(tied);
  ParallelismSpec added;
  CHECK(google::protobuf::TextFormat::ParseFromString(parallelism, &added));
  job.mutable_parallelism()->MergeFrom(added);
  return job;
}

TEST(ResolveStrategies, TheFirstSaysWhatTheMeshIsWhereTheJobDoesNot) {
  const JobSpec job = JobOf(
      "pipeline: 2 data: 1 strategies { stage: 1 tensor: 2 } "
      "strategies { units: 'head' batch: 2 }");
  EXPECT_EQ(RanksNeeded(job), 4);
  const auto resolved = ResolveJob(job);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->parallelism().tensor(), 2);
  EXPECT_EQ(resolved->parallelism().batch(), 1);
  EXPECT_EQ(resolved->parallelism().strategies(1).batch(), 2);
  EXPECT_EQ(resolved->parallelism().strategies(1).tensor(), 1);
  const auto again = ResolveJob(*resolved);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), resolved->SerializeAsString());
}

struct Refused {
  const char* parallelism;
  const char* message;
  bool tied = false;
};

const Refused kRefused[] = {
    {"tensor: 2 strategies { batch: 2 }",
     "parallelism.strategies[0]: does not say of what: give stage, a number, "
     "or units, a list of embedding, blocks, head, and numbers of units"},
    {"tensor: 2 strategies { stage: 0 units: 'head' batch: 2 }",
     "parallelism.strategies[0]: has a stage and units; leave one of them out"},
    {"tensor: 2 strategies { units: 'block' batch: 2 }",
     "parallelism.strategies[0].units: "},
    {"pipeline: 2 tensor: 2 strategies { stage: 2 batch: 2 }",
     "parallelism.strategies[0].stage: 2 is no stage of 2 "
     "(parallelism.pipeline x virtual_stages); use 0 to 1"},
    {"tensor: 2 strategies { units: '7' batch: 2 }",
     "parallelism.strategies[0].units: 7 is no unit of 4; use 0 to 3"},
    {"tensor: 2 strategies { units: 'head' batch: 4 }",
     "parallelism.strategies[0]: batch: 4 is for 4 ranks, and the other units "
     "of the job are for 2 (tensor: 2); within a replica each stage has as "
     "many ranks for all units: use sizes whose product is the same"},
    {"batch: 4 strategies { units: 'head' batch: 2 tensor: 2 }",
     "parallelism.strategies[0]: batch: 2, tensor: 2 divides 4 ranks into 2 x "
     "2, and batch: 4 into 4; they must be divided alike, in the order batch, "
     "context, tensor; only batch of a strategy may be several sizes of "
     "parallelism itself in a row, so give the smallest sizes there"},
    {"batch: 2 tensor: 2 strategies { units: 'head' tensor: 4 }",
     "parallelism.strategies[0]: tensor: 4 divides 4 ranks into 4, and batch: "
     "2, tensor: 2 into 2 x 2; "},
    {"context: 2 tensor: 3 zero: 1 zero_size: 2 data: 2 "
     "strategies { units: 'blocks' batch: 6 }",
     "parallelism.strategies[0].zero_size: 2 are no neighbours among the 6 "
     "ranks of batch, which are 2 x 3; use 1"},
    {"tensor: 2 strategies { units: 'head' batch: 2 tensor_method: '2d' }",
     "parallelism.strategies[0].tensor_method: "},
    {"data: 2 strategies { units: 'head' tensor: 0 }",
     "parallelism.strategies[0].tensor: "},
    // Fewer ranks hold a unit alike than the job deals over.
    {"batch: 4 data: 2 zero: 1 zero_size: 4 "
     "strategies { units: 'blocks' tensor: 4 }",
     "parallelism.strategies[0].zero_size: 4 are more than hold a unit alike; "
     "use 2"},
    // What is cut.
    {"tensor: 3 strategies { units: 'blocks' units: 'embedding' units: 'head' "
     "batch: 3 }",
     "parallelism.strategies[0].batch: 3 ranks cannot share 4 "
     "(training.micro_batch_size) evenly; use 2 or 4"},
    {"tensor: 2 strategies { units: 'head' batch: 2 }",
     "parallelism.strategies: unit 3 uses transformer.wte.weight of unit 0, "
     "and ranks must share it alike for both; give both one strategy, or do "
     "without what uses it twice (model.tie_word_embeddings, ",
     true},
    {"batch: 2 strategies { units: 'blocks' context: 2 }",
     "parallelism.strategies: unit 0 makes what unit 1 reads, and no exchange "
     "turns how it lies with parallelism.batch: 2 into how it lies with "
     "parallelism.strategies[0].context: 2"},
    {"batch: 2 tensor: 2 strategies { units: 'blocks' context: 2 "
     "context_method: 'ring' tensor: 2 }",
     "parallelism.strategies: unit 0 makes what unit 1 reads"},
};

TEST(ResolveStrategies, RefusesWithTheWayOut) {
  for (const Refused& refused : kRefused) {
    const JobSpec job = JobOf(refused.parallelism, refused.tied);
    const auto plan = CompilePlan(job, ExampleWorkers(12));
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument)
        << refused.parallelism;
    EXPECT_THAT(std::string(plan.status().message()),
                HasSubstr(refused.message))
        << refused.parallelism;
  }
}

}  // namespace
}  // namespace troupe
