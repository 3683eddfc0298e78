#include "tests/bench/bench_job.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

std::string Refusal(const BenchJobOptions& options) {
  return std::string(BenchPlan(options, testing::TempDir() + "/none.tokens", {})
                         .status()
                         .message());
}

TEST(BenchJob, RefusesWorkersThatCannotBeCutSo) {
  EXPECT_EQ(Refusal({.workers = 3, .tensor = 2}),
            "workers: 3 are no multiple of tensor 2 x context 1; use 4");
  EXPECT_EQ(Refusal({.workers = 2, .tensor = 2, .context = 2}),
            "workers: 2 are no multiple of tensor 2 x context 2; use 4");
  EXPECT_EQ(Refusal({.context = 0}),
            "workers, tensor and context: use 1 or more of each");
}

}  // namespace
}  // namespace troupe
