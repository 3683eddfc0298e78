#include "proto/plan/ranks_needed.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "proto/plan/plan_limits.h"

namespace troupe {
namespace {

TEST(RanksNeeded, IsTheProductOfSizesUpToALimit) {
  JobSpec job;
  EXPECT_EQ(RanksNeeded(job), 1);
  job.mutable_parallelism()->set_data(3072);
  job.mutable_parallelism()->set_tensor(8);
  EXPECT_EQ(RanksNeeded(job), 24576);
  job.mutable_parallelism()->set_tensor(std::numeric_limits<int>::max());
  EXPECT_EQ(RanksNeeded(job), kRanksMax);
}

std::string Refusal(const ParallelismSpec& parallelism) {
  return std::string(CheckSizes(parallelism).message());
}

TEST(CheckSizes, TakesAHundredThousandRanks) {
  ParallelismSpec parallelism;
  EXPECT_EQ(Refusal(parallelism), "");
  parallelism.set_data(100'000);
  EXPECT_EQ(Refusal(parallelism), "");
  parallelism.set_data(6250);
  parallelism.set_pipeline(16);
  EXPECT_EQ(Refusal(parallelism), "");
}

TEST(CheckSizes, NamesTheSizeAndItsLimit) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(std::numeric_limits<int>::max());
  EXPECT_EQ(Refusal(parallelism),
            "parallelism.tensor: 2147483647 is out of range; use 1 to 1024");
  parallelism.set_tensor(1024);
  parallelism.set_pipeline(2);
  parallelism.set_data(1000);
  EXPECT_EQ(Refusal(parallelism),
            "parallelism.tensor: 1024 x parallelism.data 1000 x "
            "parallelism.pipeline 2 = 2048000 ranks; at most 131072 are "
            "planned: use smaller sizes");
  parallelism.set_data(0);
  EXPECT_EQ(Refusal(parallelism),
            "parallelism.data: 0 is out of range; use 1 to 131072");
}

}  // namespace
}  // namespace troupe
