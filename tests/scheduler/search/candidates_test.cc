#include "scheduler/search/candidates.h"

#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of so large a batch that 32 ranks are quicker than 16.
JobSpec OpenJob() {
  JobSpec job = ExampleJob({.blocks = 4});
  job.clear_parallelism();
  job.mutable_parallelism()->set_mode("auto");
  job.mutable_training()->set_global_batch_size(64);
  job.mutable_training()->set_micro_batch_size(1);
  return job;
}

// Products alone take time, so that fewer ranks are slower for certain.
std::vector<WorkerDescription> SlowWorkers(int count) {
  std::vector<WorkerDescription> workers = ExampleWorkers(count);
  for (WorkerDescription& worker : workers) {
    worker.set_host("host");
    Calibration& calibration = *worker.mutable_calibration();
    calibration.mutable_matmul(0)->set_flops_per_second(1e6);
    calibration.mutable_loopback()->set_bytes_per_second(1e12);
  }
  return workers;
}

class Estimating : public ::testing::Test {
 protected:
  Estimating() {
    EXPECT_TRUE(
        candidates_.EstimateAll([this](int ranks) { heard_.insert(ranks); })
            .ok());
  }
  std::set<int> TakeAll() {
    std::set<int> ranks;
    while (!candidates_.empty()) ranks.insert(TakeBest().ranks);
    return ranks;
  }
  Estimated TakeBest() {
    return *candidates_.Take([](const Estimated& one) {
      return absl::make_optional(
          std::make_tuple(false, one.value, one.estimate.seconds));
    });
  }

  const JobSpec job_ = OpenJob();
  const std::vector<WorkerDescription> workers_ = SlowWorkers(32);
  const MayGoOn may_go_on_;
  std::set<int> heard_;
  KnownCosts known_;
  Candidates candidates_{job_, workers_, kEstimateError, may_go_on_, known_};
};

TEST_F(Estimating, EndsWithTheNumbersThatMayWin) {
  EXPECT_THAT(heard_, ElementsAre(32));
  EXPECT_THAT(TakeAll(), ElementsAre(32));
}

// The estimate that ended it may be wrong: its plan does not fit, or takes
// longer.
TEST_F(Estimating, FewerRanksAreTakenUpAgainIfNoPlanFits) {
  TakeAll();
  EXPECT_TRUE(candidates_.Reconsider(kInfinity).value());
  EXPECT_THAT(heard_, Contains(1));
  EXPECT_THAT(TakeAll(), Contains(16));
  EXPECT_FALSE(candidates_.Reconsider(kInfinity).value());
  EXPECT_TRUE(candidates_.empty());
}

TEST_F(Estimating, FewerRanksAreTakenUpAgainIfThePlanTakesLonger) {
  const double best = TakeBest().value;
  TakeAll();
  EXPECT_FALSE(candidates_.Reconsider(best).value());
  EXPECT_THAT(TakeAll(), IsEmpty());
  EXPECT_TRUE(candidates_.Reconsider(3 * best).value());
  EXPECT_THAT(heard_, Contains(16));
  EXPECT_THAT(heard_, Not(Contains(8)));
}

}  // namespace
}  // namespace troupe
