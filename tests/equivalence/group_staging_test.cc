// Groups of ranks that share a GPU go through memory of the host: what the plan
// says of it is what they take, on a device that looks like a GPU.
#include "proto/plan/group_staging.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "proto/plan/roles.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/tensor_job.h"
#include "tests/ops/split_memory_device.h"

namespace troupe {
namespace {

std::unique_ptr<Device> NewSplitDevice() {
  return std::make_unique<SplitMemoryDevice>(CpuDeviceOptions{.threads = 1});
}

JobSpec ShortJob(const JobCut& cut) {
  JobSpec job = CutJob(
      TensorJob({.micro_batch = cut.tensor_method == "3d" ? 4 : 2}), cut);
  job.mutable_training()->set_steps(2);
  job.mutable_training()->set_validate_every(2);
  job.mutable_parallelism()->set_bucket_megabytes(0.02);
  return job;
}

class StagedGroups : public testing::TestWithParam<JobCut> {};

// What a job's ranks take is what the plan of the run says.
void ExpectTakesWhatThePlanSays(const JobSpec& job, int ranks) {
  const TrainingRun run = Train(job, {.ranks = ranks,
                                      .trace_every = 0,
                                      .new_device = NewSplitDevice,
                                      .staging_grows = true});
  ASSERT_TRUE(run.status().ok()) << run.status();
  GroupStaging staging(run.plan, run.plan.groups());
  for (const Role& role : run.plan.roles()) {
    // Of parts that are not even the plan says the largest.
    int64_t least_over = std::numeric_limits<int64_t>::max();
    for (const int r : RanksOf(run.plan.mesh(), role)) {
      const int64_t says = staging.BytesOf(role, r);
      EXPECT_GT(says, 0) << "rank " << r;
      EXPECT_LE(run.staged_bytes[r], says) << "rank " << r;
      least_over = std::min(least_over, says - run.staged_bytes[r]);
    }
    EXPECT_EQ(least_over, 0);
  }
}

TEST_P(StagedGroups, TakeWhatThePlanSays) {
  for (const char* precision : {"f32", "bf16"}) {
    SCOPED_TRACE(precision);
    JobSpec job = ShortJob(GetParam());
    job.mutable_training()->set_precision(precision);
    ExpectTakesWhatThePlanSays(job, GetParam().ranks());
  }
}

TEST_P(StagedGroups, TakeWhatThePlanSaysWithFrozenParameters) {
  JobSpec job = ShortJob(GetParam());
  for (const char* const pattern : {"*.mlp.*", "*.0.*"}) {
    job.mutable_training()->add_freeze(pattern);
  }
  ExpectTakesWhatThePlanSays(job, GetParam().ranks());
}

INSTANTIATE_TEST_SUITE_P(
    Cuts, StagedGroups,
    testing::Values(JobCut{.data = 2}, JobCut{.data = 4, .zero = 3},
                    JobCut{.data = 4, .zero = 2},
                    JobCut{.data = 4, .zero = 3, .zero_size = 2},
                    JobCut{.tensor = 2, .sequence = true, .data = 2},
                    JobCut{.tensor = 2, .pipeline = 2},
                    JobCut{.schedule = "zb_h1", .pipeline = 4},
                    JobCut{.schedule = "chimera", .pipeline = 2, .data = 2},
                    JobCut{.tensor = 4, .tensor_method = "2d"},
                    JobCut{.tensor = 8, .tensor_method = "3d"},
                    JobCut{.data = 2, .context = 2},
                    JobCut{.context = 3, .context_method = "ring"}));

}  // namespace
}  // namespace troupe
