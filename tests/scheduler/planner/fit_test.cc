#include "scheduler/planner/fit.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/group_staging.h"
#include "proto/plan/memory.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/simulate/gpu_scratch.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

int64_t Need(const JobSpec& job) {
  int64_t bytes = 0;
  const Plan plan = ExamplePlan(job);
  for (const Role& role : plan.roles()) {
    int64_t of_role = 0;
    for (const Slot& slot : role.slots()) of_role += slot.bytes();
    bytes = std::max(bytes, of_role);
  }
  return bytes;
}

absl::Status Compile(const JobSpec& job, int64_t budget) {
  std::vector<WorkerDescription> workers = ExampleWorkers(RanksNeeded(job));
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(budget);
  }
  return CompilePlan(job, workers).status();
}

// Workers with memory for nothing.
std::vector<WorkerDescription> Poor(int count) {
  std::vector<WorkerDescription> workers = ExampleWorkers(count);
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(1);
  }
  return workers;
}

JobSpec Job(int micro_batch_size, const std::string& schedule = "") {
  JobSpec job = ExampleJob({.data = 2});
  if (!schedule.empty()) {
    job.mutable_parallelism()->set_pipeline_schedule(schedule);
  }
  job.mutable_training()->set_global_batch_size(2 * 16);
  job.mutable_training()->set_micro_batch_size(micro_batch_size);
  return job;
}

TEST(CheckFit, NamesTheLargestMicroBatchThatFits) {
  const int64_t four = Need(Job(4));
  ASSERT_GT(Need(Job(8)), four);
  EXPECT_TRUE(Compile(Job(4), four).ok());
  for (const int wanted : {8, 16}) {
    const absl::Status status = Compile(Job(wanted), four);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(
            StartsWith("training.micro_batch_size: " + std::to_string(wanted) +
                       " needs more memory than "
                       "there is; use 4, the largest that fits: rank 0 on "
                       "worker worker-0: device memory needs"),
            HasSubstr("(overflows here)")));
  }
}

// What is advised must work: the advice is taken for every budget in between.
TEST(CheckFit, TheAdviceFits) {
  for (int64_t budget = Need(Job(1)); budget < Need(Job(16)); budget += 20000) {
    const absl::Status status = Compile(Job(16), budget);
    const std::string message(status.message());
    const size_t at = message.find("use ");
    ASSERT_NE(at, std::string::npos);
    const int advised = std::stoi(message.substr(at + 4));
    EXPECT_TRUE(Compile(Job(advised), budget).ok()) << budget;
    EXPECT_FALSE(Compile(Job(2 * advised), budget).ok()) << budget;
  }
}

// One stage of GPipe has all micro-batches of a step at once.
TEST(CheckFit, TheAdviceFitsWhereMemoryIsOfAllMicroBatches) {
  int advices = 0;
  const int64_t most = Need(Job(16, "gpipe"));
  for (int64_t budget = most / 4; budget < most; budget += most / 40) {
    const absl::Status status = Compile(Job(16, "gpipe"), budget);
    const std::string message(status.message());
    const size_t at = message.find("there is; use ");
    if (at == std::string::npos) continue;
    ++advices;
    const int advised = std::stoi(message.substr(at + 14));
    EXPECT_TRUE(Compile(Job(advised, "gpipe"), budget).ok())
        << budget << ": " << advised;
  }
  EXPECT_GT(advices, 0);
}

// With micro-batches of 1 this step would have a million of them.
TEST(CheckFit, TriesOnlyWhatCouldBePlannedAndFewOfThem) {
  JobSpec job = ExampleJob({.data = 1});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_training()->set_sequence_length(2);
  Plan plan = ExamplePlan(job);
  job.mutable_training()->set_global_batch_size(1 << 20);
  job.mutable_training()->set_micro_batch_size(1 << 18);
  *plan.mutable_job() = ResolveJob(job).value();
  int tried = 0;
  const absl::Status status =
      CheckFit(plan, Poor(2), [&](const JobSpec& smaller) {
        ++tried;
        EXPECT_TRUE(ResolveJob(smaller).ok())
            << smaller.training().micro_batch_size();
        return absl::StatusOr<Plan>(plan);
      });
  EXPECT_GT(tried, 0);
  EXPECT_LE(tried, 32);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("does not fit with any training.micro_batch_size"));
}

// It takes a multiple of 4 micro-batches a step: of the sizes that divide 144,
// 8, 16 and 24 are refused, which says nothing of others.
TEST(CheckFit, StepsOverWhatTheScheduleRefuses) {
  const auto job = [](int micro_batch_size) {
    JobSpec spec = ExampleJob({.data = 1});
    spec.mutable_model()->set_num_hidden_layers(8);
    spec.mutable_parallelism()->set_pipeline(4);
    spec.mutable_parallelism()->set_pipeline_schedule("interleaved_1f1b");
    spec.mutable_training()->set_global_batch_size(144);
    spec.mutable_training()->set_micro_batch_size(micro_batch_size);
    return spec;
  };
  const int64_t budget = Need(job(18));
  ASSERT_GT(Need(job(36)), budget);
  EXPECT_THAT(std::string(Compile(job(36), budget).message()),
              HasSubstr("use 18, the largest that fits"));
}

TEST(CheckFit, EndsWhereItMayNotGoOn) {
  int tried = 0;
  const absl::Status status =
      CheckFit(ExamplePlan(Job(16)), Poor(2), [&](const JobSpec&) {
        ++tried;
        return absl::StatusOr<Plan>(absl::CancelledError("enough"));
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(tried, 1);
}

TEST(CheckFit, SaysSoWhereNoMicroBatchFits) {
  EXPECT_THAT(std::string(Compile(Job(4), 100000).message()),
              AllOf(StartsWith("model.hidden_size: 16 with 2 blocks does not "
                               "fit with any training.micro_batch_size"),
                    HasSubstr("use more ranks of a pipeline"),
                    HasSubstr("optimizer_moments 62.5 KiB (overflows here)")));
}

// On a GPU there must be room for what its kernels take beside the slots.
TEST(CheckFit, CountsTheScratchOfGpus) {
  const JobSpec job = ExampleJob({});
  const int64_t slots = Need(job);
  int64_t beside = 0;
  for (const MemoryItem& item : GpuScratchItems(ExamplePlan(job))) {
    beside += item.bytes();
  }
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  const auto compile = [&](int64_t budget) {
    workers[0].mutable_budgets(0)->set_bytes(budget);
    return CompilePlan(job, workers).status();
  };
  EXPECT_TRUE(compile(slots).ok());
  workers[0].mutable_gpu()->set_uuid("x");
  EXPECT_TRUE(compile(slots + beside).ok());
  EXPECT_THAT(std::string(compile(slots + beside - 1).message()),
              AllOf(HasSubstr("product_workspace 32.0 MiB"),
                    HasSubstr("kernel_scratch 32.0 MiB (overflows here)")));
}

// Ranks that share a GPU are joined through the host.
TEST(CheckFit, CountsWhatGroupsOfOneGpuAreStagedThrough) {
  const JobSpec job = ExampleJob({.data = 2});
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  for (WorkerDescription& worker : workers) {
    worker.mutable_gpu()->set_uuid("x");
    TierBudget& host = *worker.add_budgets();
    host.set_tier(HOST);
    host.set_bytes(1 << 30);
  }
  const absl::StatusOr<Plan> shared = CompilePlan(job, workers);
  ASSERT_TRUE(shared.ok()) << shared.status();
  const int64_t staged = PredictedBytes(*shared, 1, kGroupStagingItem);
  EXPECT_GE(staged, 4 * shared->units(0).flat_elements());
  const auto compile = [&](int64_t host) {
    for (WorkerDescription& worker : workers) {
      worker.mutable_budgets(1)->set_bytes(host);
    }
    return CompilePlan(job, workers);
  };
  EXPECT_TRUE(compile(staged).ok());
  EXPECT_THAT(std::string(compile(staged - 1).status().message()),
              HasSubstr("group_staging"));
  workers[1].mutable_gpu()->set_uuid("y");
  const absl::StatusOr<Plan> apart = compile(0);
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(PredictedBytes(*apart, 1, kGroupStagingItem), 0);
}

JobSpec CutJob(int tensor, bool sequence) {
  JobSpec job = ExampleJob({.micro_batch_size = 1});
  job.mutable_training()->set_sequence_length(8);
  job.mutable_parallelism()->set_tensor(tensor);
  job.mutable_parallelism()->set_sequence_parallel(sequence);
  return job;
}

TEST(CheckFit, NamesTheCutOfUnitsThatFits) {
  const int64_t two = Need(CutJob(2, false));
  ASSERT_GT(Need(CutJob(1, false)), two);
  const absl::Status whole = Compile(CutJob(1, false), two);
  EXPECT_THAT(std::string(whole.message()),
              HasSubstr("use parallelism.tensor: 2, with which it fits, on 2 "
                        "workers like these"));
  EXPECT_TRUE(Compile(CutJob(2, false), two).ok());

  const int64_t sequence = Need(CutJob(2, true));
  ASSERT_GT(two, sequence);
  const absl::Status rows = Compile(CutJob(2, false), sequence);
  EXPECT_THAT(std::string(rows.message()),
              HasSubstr("parallelism.sequence_parallel: true, with which it "
                        "fits"));
  EXPECT_TRUE(Compile(CutJob(2, true), sequence).ok());
}

// Of squares, layers and cubes of ranks the next ones, and nothing that they
// leave no room for.
TEST(CheckFit, BlocksOfRanksAreToldWhatFits) {
  for (const auto& [method, tensor, micro_batch] :
       {std::tuple("2d", 4, 2), {"2.5d", 8, 4}, {"3d", 8, 4}}) {
    JobSpec job = ExampleJob({.micro_batch_size = micro_batch});
    job.mutable_parallelism()->set_tensor(tensor);
    job.mutable_parallelism()->set_tensor_method(method);
    const absl::Status status = Compile(job, Need(job) / 8);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("does not fit with any"),
              Not(HasSubstr("sequence_parallel")), Not(HasSubstr("op "))))
        << method;
  }
}

TEST(CheckFit, NamesTheCutOfSequencesThatFits) {
  const auto of_long_sequences = [](int context) {
    JobSpec job = ExampleJob({.micro_batch_size = 1});
    job.mutable_model()->set_max_position_embeddings(512);
    job.mutable_training()->set_sequence_length(512);
    job.mutable_parallelism()->set_context(context);
    return job;
  };
  const int64_t two = Need(of_long_sequences(2));
  ASSERT_GT(Need(of_long_sequences(1)), two);
  EXPECT_THAT(std::string(Compile(of_long_sequences(1), two).message()),
              HasSubstr("parallelism.context: 2, with which it fits, on 2 "
                        "workers like these"));
  EXPECT_TRUE(Compile(of_long_sequences(2), two).ok());
}

// Rows of scores are in memory for nothing.
TEST(CheckFit, NamesRingsThatFitWithoutScores) {
  const auto with = [](const char* method, int micro_batch_size) {
    JobSpec job = ExampleJob({.micro_batch_size = micro_batch_size});
    job.mutable_model()->set_max_position_embeddings(512);
    job.mutable_training()->set_sequence_length(512);
    job.mutable_parallelism()->set_context(2);
    job.mutable_parallelism()->set_context_method(method);
    return job;
  };
  for (const int micro_batch_size : {1, 2}) {
    const int64_t ring = Need(with("ring", micro_batch_size));
    const JobSpec scores = with("ring_self_attention", micro_batch_size);
    ASSERT_GT(Need(scores), ring);
    EXPECT_THAT(std::string(Compile(scores, ring).message()),
                HasSubstr("parallelism.context_method: ring, with which it "
                          "fits, as no scores are in memory"));
  }
}

// Also where no replica but each rank of a sequence has the same.
TEST(CheckFit, NamesSlicesOverTheRanksOfASequence) {
  JobSpec job = ExampleJob({.micro_batch_size = 1});
  job.mutable_parallelism()->set_context(2);
  JobSpec dealt = job;
  dealt.mutable_parallelism()->set_zero(1);
  const int64_t slices = Need(dealt);
  ASSERT_GT(Need(job), slices);
  EXPECT_THAT(std::string(Compile(job, slices).message()),
              HasSubstr("use parallelism.zero: 1 ("));
  EXPECT_TRUE(Compile(dealt, slices).ok());
}

}  // namespace
}  // namespace troupe
