#include "scheduler/planner/resolve_memory.h"

#include <string>

#include "gtest/gtest.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

std::string ErrorOf(const RecomputeSpec& spec) {
  JobSpec job = ExampleJob({});
  *job.mutable_memory()->mutable_recompute() = spec;
  return std::string(ResolveJob(job).status().message());
}

TEST(ResolveMemory, KeepsAllByDefault) {
  const JobSpec job = *ResolveJob(ExampleJob({}));
  EXPECT_EQ(job.memory().recompute().mode(), "none");
}

TEST(ResolveMemory, UnitsAloneAreAList) {
  JobSpec job = ExampleJob({});
  job.mutable_memory()->mutable_recompute()->add_units(1);
  EXPECT_EQ(ResolveJob(job)->memory().recompute().mode(), "units");
}

TEST(ResolveMemory, RefusesWhatContradicts) {
  RecomputeSpec spec;
  spec.set_mode("ful");
  EXPECT_NE(ErrorOf(spec).find("memory.recompute: "), std::string::npos);
  EXPECT_NE(ErrorOf(spec).find("full"), std::string::npos);
  spec.set_mode("auto");
  spec.add_units(1);
  EXPECT_EQ(ErrorOf(spec),
            "memory.recompute: \"auto\" is of all units, and some are listed "
            "too; use one or the other");
  spec.clear_mode();
  spec.add_units(4);
  EXPECT_EQ(ErrorOf(spec),
            "memory.recompute.units: there is no unit 4: 0 is the embedding, 1 "
            "to 2 are the blocks, 3 is the head");
  spec.mutable_units()->Clear();
  spec.add_units(1);
  spec.add_selective_units(1);
  EXPECT_EQ(ErrorOf(spec),
            "memory.recompute.selective_units: unit 1 is listed twice; list it "
            "once");
}

TEST(ResolveMemory, RefusesWhatSyntheticUnitsCannot) {
  ModelSpec model;
  model.set_architecture("synthetic");
  MemorySpec memory;
  EXPECT_TRUE(ResolveMemory(model, memory).ok());
  memory.mutable_recompute()->set_mode("full");
  EXPECT_EQ(ResolveMemory(model, memory).message(),
            "memory.recompute: synthetic units compute nothing that could be "
            "made again; leave it out");
}

TEST(ResolveMemory, ChunksOfTheLossAreNumbersOfTokens) {
  JobSpec job = ExampleJob({});
  EXPECT_FALSE(ResolveJob(job)->memory().has_loss_chunk_tokens());
  for (const int64_t tokens : {0, 1, 7, 1 << 30}) {
    job.mutable_memory()->set_loss_chunk_tokens(tokens);
    ASSERT_TRUE(ResolveJob(job).ok());
    EXPECT_EQ(ResolveJob(job)->memory().loss_chunk_tokens(), tokens);
  }
  job.mutable_memory()->set_loss_chunk_tokens(-1);
  const std::string error(ResolveJob(job).status().message());
  EXPECT_EQ(error.find("memory.loss_chunk_tokens: "), 0u) << error;
  ModelSpec synthetic;
  synthetic.set_architecture("synthetic");
  MemorySpec memory;
  memory.set_loss_chunk_tokens(8);
  EXPECT_EQ(ResolveMemory(synthetic, memory).message(),
            "memory.loss_chunk_tokens: synthetic units compute no loss; leave "
            "it out");
}

}  // namespace
}  // namespace troupe
