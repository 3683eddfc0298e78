#include "tests/equivalence/same_training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/ranks_needed.h"

namespace troupe {
namespace {

// Of what is counted.
constexpr double kRounding = 1e-12;

double RelativeDifference(double got, double want) {
  if (got == want) return 0;
  const double difference = std::abs(got - want) / std::abs(want);
  return std::isfinite(difference) ? difference
                                   : std::numeric_limits<double>::infinity();
}

StepDifference Compare(const StepRecord& got, const StepRecord& want) {
  CHECK_EQ(got.step(), want.step());
  CHECK_EQ(got.has_validation_loss(), want.has_validation_loss());
  StepDifference difference = {
      .losses = RelativeDifference(got.loss(), want.loss()),
      .norms = RelativeDifference(got.grad_norm(), want.grad_norm())};
  if (want.has_validation_loss()) {
    difference.losses = std::max(
        difference.losses,
        RelativeDifference(got.validation_loss(), want.validation_loss()));
  }
  return difference;
}

void ExpectSameStep(const StepRecord& got, const StepRecord& want,
                    const Tolerance& tolerance) {
  const auto expect_near = [&](double a, double b, const char* what,
                               double relative_error) {
    EXPECT_LE(RelativeDifference(a, b), relative_error)
        << what << " of step " << want.step() << ": " << a << ", not " << b;
  };
  EXPECT_EQ(got.step(), want.step());
  EXPECT_EQ(got.learning_rate(), want.learning_rate());
  EXPECT_EQ(got.samples_consumed(), want.samples_consumed());
  expect_near(got.loss(), want.loss(), "loss", tolerance.losses);
  expect_near(got.grad_norm(), want.grad_norm(), "gradient norm",
              tolerance.norms);
  expect_near(got.mtp_loss(), want.mtp_loss(), "loss of modules",
              tolerance.losses);
  ASSERT_EQ(got.has_routers(), want.has_routers());
  const RouterRecord& routers = want.routers();
  expect_near(got.routers().balance_loss(), routers.balance_loss(),
              "balancing loss", tolerance.losses);
  expect_near(got.routers().z_loss(), routers.z_loss(), "z-loss",
              tolerance.losses);
  expect_near(got.routers().entropy(), routers.entropy(), "routers' entropy",
              tolerance.losses);
  expect_near(got.routers().busiest_over_mean(), routers.busiest_over_mean(),
              "load of the busiest expert", kRounding);
  expect_near(got.routers().dropped_share(), routers.dropped_share(),
              "dropped share", kRounding);
  ASSERT_EQ(got.has_validation_loss(), want.has_validation_loss());
  if (want.has_validation_loss()) {
    expect_near(got.validation_loss(), want.validation_loss(),
                "validation loss", tolerance.losses);
  }
}

}  // namespace

const TrainingRun& OneRank(const JobSpec& job) {
  static auto* const runs = new std::map<std::string, TrainingRun>;
  const auto [found, is_new] = runs->try_emplace(job.SerializeAsString());
  if (is_new) found->second = Train(job, {});
  return found->second;
}

StepDifference FurthestApart(const TrainingRun& run,
                             const TrainingRun& reference) {
  const std::vector<StepRecord>& want = reference.steps.at(0);
  StepDifference furthest;
  for (const std::vector<StepRecord>& steps : run.steps) {
    CHECK_EQ(steps.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const StepDifference difference = Compare(steps[i], want[i]);
      furthest.losses = std::max(furthest.losses, difference.losses);
      furthest.norms = std::max(furthest.norms, difference.norms);
    }
  }
  return furthest;
}

void ExpectSameSteps(const std::vector<StepRecord>& steps,
                     const std::vector<StepRecord>& reference,
                     const Tolerance& tolerance) {
  ASSERT_FALSE(steps.empty());
  const int64_t skipped = steps[0].step() - reference.at(0).step();
  ASSERT_GE(skipped, 0);
  ASSERT_LE(skipped + steps.size(), reference.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    ExpectSameStep(steps[i], reference[skipped + i], tolerance);
  }
}

void ExpectSameTraining(const TrainingRun& run, const TrainingRun& reference,
                        const Tolerance& tolerance) {
  ASSERT_TRUE(run.status().ok()) << run.status();
  for (size_t rank = 0; rank < run.steps.size(); ++rank) {
    SCOPED_TRACE(testing::Message() << "rank " << rank);
    ASSERT_EQ(run.steps[rank].size(), reference.steps[0].size());
    ExpectSameSteps(run.steps[rank], reference.steps[0], tolerance);
  }
  EXPECT_EQ(run.bytes_left, 0u);
  EXPECT_TRUE(run.files_left.empty());
}

void ExpectResumesThrough(const std::vector<JobSpec>& plans,
                          const TrainingRun& reference,
                          const Tolerance& tolerance) {
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  const testing::TestInfo& test =
      *testing::UnitTest::GetInstance()->current_test_info();
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/", test.name());
  std::filesystem::remove_all(directory);
  for (size_t done = 0; done < plans.size(); ++done) {
    JobSpec part = plans[done];
    SCOPED_TRACE(part.parallelism().ShortDebugString());
    part.mutable_checkpoint()->set_directory(directory);
    part.mutable_training()->set_stop_after(done + 1);
    const TrainingRun run = Train(
        part, {.ranks = RanksNeeded(part), .resume = done > 0 ? "latest" : ""});
    ASSERT_TRUE(run.status().ok()) << run.status();
    for (std::vector<StepRecord> records : run.steps) {
      ASSERT_EQ(records.size(), 1u);
      // A run that stops validates, where one that goes on does not.
      if (!reference.steps[0][done].has_validation_loss()) {
        records.back().clear_validation_loss();
      }
      ExpectSameSteps(records, reference.steps[0], tolerance);
    }
  }
  std::filesystem::remove_all(directory);
}

}  // namespace troupe
