#include "scheduler/planner/memory_changes.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/planner/memory_settings.h"

namespace troupe {
namespace {

bool OffersChunks(JobSpec job) {
  job.mutable_training()->set_sequence_length(2048);
  job.mutable_model()->set_max_position_embeddings(2048);
  const auto resolved = ResolveJob(job);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  const std::vector<MemoryChange> changes = MemoryChangesOf(*resolved, {});
  return std::any_of(changes.begin(), changes.end(),
                     [](const MemoryChange& change) {
                       return change.named.field == "memory.loss_chunk_tokens";
                     });
}

// Each chunk would round the gradient once more.
TEST(MemoryChanges, ChunksOfTheLossAreForGradientsInF32) {
  JobSpec job = AutoJob();
  EXPECT_TRUE(OffersChunks(job));
  job.mutable_training()->set_precision("bf16");
  EXPECT_TRUE(OffersChunks(job));
  job.mutable_training()->set_gradient_precision("parameters");
  EXPECT_FALSE(OffersChunks(job));
}

}  // namespace
}  // namespace troupe
