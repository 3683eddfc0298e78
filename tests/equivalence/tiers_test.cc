// The promise, for what rests below the device: a model whose optimizer, and
// more, rests in the host's memory or on a disk is trained as one that rests on
// the device, bit for bit on one rank.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "scheduler/planner/planner.h"
#include "storage/spill/spill_file.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/tensor_job.h"
#include "tests/ops/split_memory_device.h"
#include "tests/storage/engine/failing_engine.h"
#include "tests/storage/engine/stuck_engine.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

struct TierCase {
  std::string precision = "f32";
  std::string optimizer;
  double clipping = 1;
  JobCut cut = {};
};

std::string NameOf(const TierCase& tier) {
  const JobCut& cut = tier.cut;
  return absl::StrCat(tier.precision, "_", tier.optimizer,
                      tier.clipping == 0 ? "_unclipped" : "", "_data", cut.data,
                      "_zero", cut.zero,
                      cut.tensor > 1 ? absl::StrCat("_tensor", cut.tensor) : "",
                      cut.pipeline > 1 ? absl::StrCat("_", cut.schedule) : "");
}

JobSpec TierJob(const TierCase& tier) {
  JobSpec job = TensorJob({.architecture = "gpt2", .tied = true});
  job.mutable_training()->set_precision(tier.precision);
  job.mutable_training()->set_gradient_clipping(tier.clipping);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_global_batch_size(12);
  job.mutable_training()->set_steps(6);
  return job;
}

JobSpec InTier(const JobSpec& job, const std::string& optimizer) {
  JobSpec offloaded = job;
  offloaded.mutable_memory()->set_optimizer(optimizer);
  return offloaded;
}

std::vector<TierCase> Cases() {
  std::vector<TierCase> cases;
  for (const char* const tier : {"host", "nvme"}) {
    for (const char* const precision : {"f32", "bf16"}) {
      cases.push_back({.precision = precision, .optimizer = tier});
      cases.push_back(
          {.precision = precision, .optimizer = tier, .clipping = 0});
      for (const int zero : {0, 1, 2, 3}) {
        cases.push_back({.precision = precision,
                         .optimizer = tier,
                         .cut = {.data = 2, .zero = zero}});
      }
    }
    cases.push_back(
        {.optimizer = tier,
         .cut = {.schedule = "1f1b", .pipeline = 2, .data = 2, .zero = 1}});
    cases.push_back({.optimizer = tier, .cut = {.tensor = 2, .data = 2}});
  }
  return cases;
}

class Tiers : public testing::TestWithParam<TierCase> {};

TEST_P(Tiers, TrainTheSameModel) {
  const TierCase& tier = GetParam();
  const JobSpec job = CutJob(TierJob(tier), tier.cut);
  const int ranks = tier.cut.ranks();
  const TrainingRun on_device = Train(job, {.ranks = ranks});
  ASSERT_TRUE(on_device.status().ok()) << on_device.status();
  const TrainingRun run = Train(InTier(job, tier.optimizer), {.ranks = ranks});
  ExpectSameTraining(run, on_device, kTolerance);
  // The same sums in the same order, wherever they rest.
  for (size_t i = 0; i < run.steps[0].size(); ++i) {
    EXPECT_EQ(run.steps[0][i].loss(), on_device.steps[0][i].loss()) << i;
  }
  for (const StepRecord& step : run.steps[0]) {
    ASSERT_EQ(step.tiers_size(), tier.optimizer == "nvme" ? 2 : 1);
    for (const TierTraffic& traffic : step.tiers()) {
      EXPECT_GT(traffic.bytes_in(), 0);
      EXPECT_GT(traffic.bytes_out(), 0);
      EXPECT_GT(traffic.seconds(), 0);
      EXPECT_LE(traffic.waited_seconds(), step.step_seconds());
    }
  }
  EXPECT_EQ(on_device.steps[0][0].tiers_size(), 0);
}

INSTANTIATE_TEST_SUITE_P(InProcess, Tiers, testing::ValuesIn(Cases()),
                         [](const auto& info) { return NameOf(info.param); });

// Weights of several ages, each with its own place on the disk.
TEST(TiersOfVersions, TrainTheSameModel) {
  for (const char* const schedule : {"pipedream", "pipedream_2bw"}) {
    for (const char* const precision : {"f32", "bf16"}) {
      SCOPED_TRACE(absl::StrCat(schedule, ", ", precision));
      const JobSpec job =
          CutJob(TierJob({.precision = precision, .clipping = 0}),
                 {.schedule = schedule, .pipeline = 2});
      const TrainingRun on_device = Train(job, {.ranks = 2});
      ASSERT_TRUE(on_device.status().ok()) << on_device.status();
      for (const char* const tier : {"host", "nvme"}) {
        JobSpec below = InTier(job, tier);
        below.mutable_memory()->set_parameters(tier);
        const TrainingRun run = Train(below, {.ranks = 2});
        ExpectSameTraining(run, on_device);
      }
    }
  }
}

// A micro-batch of the next step is made where the same one of this step rests,
// part by part.
TEST(TiersOfVersions, KeepMicroBatchesOfTheNextStep) {
  JobSpec job = CutJob(TierJob({.clipping = 0}),
                       {.tensor = 2, .schedule = "pipedream", .pipeline = 2});
  job.mutable_training()->set_global_batch_size(12);
  const TrainingRun on_device = Train(job, {.ranks = 4});
  ASSERT_TRUE(on_device.status().ok()) << on_device.status();
  job.mutable_memory()->set_activations("nvme");
  ExpectSameTraining(Train(job, {.ranks = 4}), on_device);
}

// Of the device's bytes, as many as it takes where nothing stays, half of what
// it would take to keep all, and those.
TEST(TiersInChunks, TrainTheSameModel) {
  for (const JobCut& cut :
       {JobCut{}, JobCut{.schedule = "1f1b", .pipeline = 2, .data = 2},
        JobCut{.data = 2, .zero = 2}}) {
    JobSpec job = CutJob(TierJob({}), cut);
    const TrainingRun on_device = Train(job, {.ranks = cut.ranks()});
    ASSERT_TRUE(on_device.status().ok()) << on_device.status();
    MemorySpec& memory = *job.mutable_memory();
    memory.set_parameters("nvme");
    memory.set_gradients("host");
    memory.set_activations("host");
    const auto device_bytes = [&] {
      const Plan plan = CompileForThreads(job, cut.ranks()).value();
      int64_t most = 0;
      for (const Role& role : plan.roles()) {
        most = std::max(most, BytesIn(role, DEVICE));
      }
      return most;
    };
    const int64_t least = device_bytes();
    memory.set_chunk_megabytes("auto");
    const int64_t most = device_bytes();
    ASSERT_LT(least, most);
    std::vector<int64_t> moved;
    for (const int64_t bytes : {least, (least + most) / 2, most}) {
      SCOPED_TRACE(absl::StrCat(NameOf({.cut = cut}), ", ", bytes));
      memory.set_device_bytes(bytes);
      EXPECT_LE(device_bytes(), bytes);
      const TrainingRun run = Train(job, {.ranks = cut.ranks()});
      ExpectSameTraining(run, on_device);
      moved.push_back(0);
      for (const TierTraffic& traffic : run.steps[0].back().tiers()) {
        moved.back() += traffic.bytes_in() + traffic.bytes_out();
      }
    }
    EXPECT_LE(moved[1], moved[0]);
    EXPECT_LT(moved[2], moved[0]);
  }
}

// As on a GPU: memory that the host cannot read, and queues of work. Weights
// are drawn, saved and read back; the optimizer runs on the host's cores.
TEST(TiersOnADevice, TrainTheSameModel) {
  for (const char* const precision : {"f32", "bf16"}) {
    for (const char* const tier : {"host", "nvme"}) {
      SCOPED_TRACE(absl::StrCat(precision, ", ", tier));
      JobSpec job = TierJob({.precision = precision});
      job.mutable_memory()->set_gradients("host");
      const TrainingRun on_cpu = Train(job, {});
      const TempDir directory;
      job.mutable_checkpoint()->set_directory(directory.path());
      job.mutable_training()->set_stop_after(3);
      const auto new_device = [] {
        return std::make_unique<SplitMemoryDevice>(
            CpuDeviceOptions{.threads = 1});
      };
      const TrainingRun first =
          Train(InTier(job, tier), {.new_device = new_device});
      ASSERT_TRUE(first.status().ok()) << first.status();
      job.mutable_training()->set_stop_after(0);
      const TrainingRun second = Train(
          InTier(job, tier), {.resume = "latest", .new_device = new_device});
      ASSERT_TRUE(second.status().ok()) << second.status();
      EXPECT_EQ(first.steps[0].back().loss(), on_cpu.steps[0][2].loss());
      ExpectSameSteps(second.steps[0], on_cpu.steps[0]);
      EXPECT_EQ(second.steps[0].back().loss(), on_cpu.steps[0].back().loss());
    }
  }
}

// `memory: auto`, of workers with too little for the job as it is: what was
// chosen is a job like any other.
TEST(TiersChosen, TrainTheSameModel) {
  JobSpec job = TierJob({});
  const TrainingRun as_it_is = Train(job, {});
  ASSERT_TRUE(as_it_is.status().ok()) << as_it_is.status();
  job.mutable_memory()->set_mode("auto");
  const int64_t need = BytesIn(as_it_is.plan.roles(0), DEVICE);
  for (const int64_t percent : {60, 50}) {
    SCOPED_TRACE(percent);
    std::vector<WorkerDescription> workers(1);
    for (const auto& [tier, bytes] :
         {std::make_pair(DEVICE, need * percent / 100),
          std::make_pair(HOST, need), std::make_pair(NVME, 4 * need)}) {
      TierBudget& budget = *workers[0].add_budgets();
      budget.set_tier(tier);
      budget.set_bytes(bytes);
    }
    const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
    ASSERT_TRUE(plan.ok()) << plan.status();
    SCOPED_TRACE(plan->prediction().chosen_memory());
    EXPECT_LE(BytesIn(plan->roles(0), DEVICE), need * percent / 100);
    const TrainingRun chosen = Train(plan->job(), {});
    ASSERT_TRUE(chosen.status().ok()) << chosen.status();
    for (size_t i = 0; i < chosen.steps[0].size(); ++i) {
      EXPECT_EQ(chosen.steps[0][i].loss(), as_it_is.steps[0][i].loss());
    }
  }
}

// What auto dealt over replicas is saved and found again by ranks that have it
// whole, and the other way round.
TEST(TiersChosen, GoOnWithAndWithoutZero) {
  JobSpec whole = CutJob(TierJob({}), {.data = 2});
  const TrainingRun as_it_is = Train(whole, {.ranks = 2});
  ASSERT_TRUE(as_it_is.status().ok()) << as_it_is.status();
  JobSpec job = whole;
  job.mutable_memory()->set_mode("auto");
  job.mutable_parallelism()->clear_zero();
  std::vector<WorkerDescription> workers(2);
  for (WorkerDescription& worker : workers) {
    TierBudget& budget = *worker.add_budgets();
    budget.set_tier(DEVICE);
    budget.set_bytes(BytesIn(as_it_is.plan.roles(0), DEVICE) * 8 / 10);
  }
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_GT(plan->job().parallelism().zero(), 0)
      << plan->prediction().chosen_memory();
  for (const auto& [before, after] : {std::make_pair(plan->job(), whole),
                                      std::make_pair(whole, plan->job())}) {
    const TempDir directory;
    JobSpec first = before;
    first.mutable_checkpoint()->set_directory(directory.path());
    first.mutable_training()->set_stop_after(3);
    const TrainingRun until = Train(first, {.ranks = 2});
    ASSERT_TRUE(until.status().ok()) << until.status();
    JobSpec second = after;
    second.mutable_checkpoint()->set_directory(directory.path());
    const TrainingRun on = Train(second, {.ranks = 2, .resume = "latest"});
    ASSERT_TRUE(on.status().ok()) << on.status();
    EXPECT_EQ(on.steps[0].front().step(), 4);
    ExpectSameSteps(on.steps[0], as_it_is.steps[0], kTolerance);
  }
}

// What rests on a disk is saved and found again by ranks that have it
// elsewhere.
TEST(TiersResume, GoOnWhereverTheStateRests) {
  const TrainingRun whole = Train(TierJob({.precision = "bf16"}), {});
  for (const bool background : {false, true}) {
    for (const auto& [before, after] :
         std::vector<std::pair<std::string, std::string>>{{"nvme", "device"},
                                                          {"device", "nvme"},
                                                          {"nvme", "host"},
                                                          {"host", "nvme"}}) {
      SCOPED_TRACE(absl::StrCat(before, " to ", after, ", ", background));
      const TempDir directory;
      JobSpec job = TierJob({.precision = "bf16"});
      job.mutable_checkpoint()->set_directory(directory.path());
      job.mutable_checkpoint()->set_background(background);
      job.mutable_checkpoint()->set_every(1);  // the last one counts
      job.mutable_training()->set_stop_after(3);
      const TrainingRun first = Train(InTier(job, before), {});
      ASSERT_TRUE(first.status().ok()) << first.status();
      job.mutable_training()->set_stop_after(0);
      job.mutable_parallelism()->set_data(2);
      job.mutable_parallelism()->set_zero(1);
      const TrainingRun second =
          Train(InTier(job, after), {.ranks = 2, .resume = "latest"});
      ASSERT_TRUE(second.status().ok()) << second.status();
      ExpectSameSteps(second.steps[0], whole.steps[0], kTolerance);
      EXPECT_EQ(second.steps[0].back().step(), 6);
    }
  }
}

// A checkpoint has the state of its own step, though all of that fits into what
// the one before it read of the disk.
TEST(TiersResume, EachCheckpointHasItsOwnState) {
  const TrainingRun whole = Train(TierJob({}), {});
  const TempDir directory;
  JobSpec job = InTier(TierJob({}), "nvme");
  CheckpointSpec& checkpoint = *job.mutable_checkpoint();
  checkpoint.set_directory(directory.path());
  checkpoint.set_background(true);
  checkpoint.set_every(2);
  job.mutable_training()->set_stop_after(4);
  const TrainingRun first = Train(job, {});
  ASSERT_TRUE(first.status().ok()) << first.status();
  ASSERT_EQ(first.checkpoints.size(), 2u);
  job.mutable_training()->set_stop_after(0);
  const TrainingRun second = Train(job, {.resume = "latest"});
  ASSERT_TRUE(second.status().ok()) << second.status();
  ASSERT_EQ(second.steps[0].front().step(), 5);
  ExpectSameSteps(second.steps[0], whole.steps[0]);
}

// Each disk of two ranks meets it in the midst of a step: both end, with the
// message of the disk; what was saved stays, and training goes on from it.
TEST(TiersFaults, ADiskThatFailsEndsTheJob) {
  for (const auto& [kind, error, word] :
       {std::tuple(IoKind::kWrite, ENOSPC, "ENOSPC"),
        std::tuple(IoKind::kWrite, EIO, "EIO"),
        std::tuple(IoKind::kRead, EIO, "EIO")}) {
    SCOPED_TRACE(word);
    const TempDir directory;
    JobSpec job = TierJob({.optimizer = "nvme"});
    job.mutable_parallelism()->set_data(2);
    job.mutable_checkpoint()->set_directory(directory.path());
    job.mutable_checkpoint()->set_every(2);
    job.mutable_checkpoint()->set_background(false);
    const auto failure = std::make_shared<DiskFailure>();
    failure->kind = kind;
    failure->error = error;
    const TrainingRun run =
        Train(InTier(job, "nvme"),
              {.ranks = 2,
               .new_nvme_io = [&](int rank) -> std::unique_ptr<IoEngine> {
                 if (rank == 0) return MakeIoEngine({.log = false}).value();
                 return std::make_unique<FailingEngine>(failure);
               },
               .on_step =
                   [&](int rank, const StepRecord& record,
                       const std::vector<TrainLoop*>& loops) {
                     if (rank == 1 && record.step() == 3) failure->left = 1;
                   }});
    EXPECT_FALSE(run.statuses[0].ok()) << "its peer is gone";
    const std::string why(run.statuses[1].message());
    EXPECT_NE(why.find("step 4"), std::string::npos) << why;
    EXPECT_NE(why.find(kind == IoKind::kWrite ? "EVICT" : "FETCH"),
              std::string::npos)
        << why;
    EXPECT_NE(why.find(word), std::string::npos) << why;
    EXPECT_TRUE(run.files_left.empty());
    EXPECT_EQ(run.bytes_left, 0u);
    const TrainingRun next =
        Train(InTier(job, "nvme"), {.ranks = 2, .resume = "latest"});
    ASSERT_TRUE(next.status().ok()) << next.status();
    EXPECT_EQ(next.steps[0].front().step(), 3);
  }
}

TEST(TiersFaults, AFileThatSomebodyChangesEndsTheJob) {
  const TempDir nvme;
  const JobSpec job = InTier(TierJob({}), "nvme");
  const TrainingRun run = Train(
      job, {.nvme = nvme.path(),
            .on_step = [&](int rank, const StepRecord& record,
                           const std::vector<TrainLoop*>& loops) {
              if (record.step() != 2) return;
              for (const auto& entry :
                   std::filesystem::directory_iterator(nvme.path())) {
                std::fstream file(entry.path(), std::ios::in | std::ios::out |
                                                    std::ios::binary);
                file.seekp(kSpillHeaderBytes);
                file << "changed" << std::flush;
              }
            }});
  EXPECT_TRUE(absl::IsDataLoss(run.status())) << run.status();
  const std::string why(run.status().message());
  EXPECT_NE(why.find("step 3"), std::string::npos) << why;
  EXPECT_NE(why.find("somebody changed the file"), std::string::npos) << why;
  EXPECT_TRUE(std::filesystem::is_empty(nvme.path()));
}

TEST(TiersFaults, TwoClustersShareADirectory) {
  const TempDir nvme;
  const JobSpec job = TierJob({});
  const TrainingRun alone = Train(job, {});
  TrainingRun other;
  std::thread at_once(
      [&] { other = Train(InTier(job, "nvme"), {.nvme = nvme.path()}); });
  const TrainingRun one = Train(InTier(job, "nvme"), {.nvme = nvme.path()});
  at_once.join();
  ExpectSameTraining(one, alone);
  ExpectSameTraining(other, alone);
  EXPECT_TRUE(std::filesystem::is_empty(nvme.path()));
}

// In the midst of a move for which the disk does not answer.
TEST(TiersFaults, AnAbortEndsMovesAndLeavesNothing) {
  const JobSpec job = InTier(TierJob({}), "nvme");
  const auto disk = std::make_shared<StuckDisk>();
  const TrainingRun run = Train(
      job, {.new_nvme_io =
                [&](int rank) { return std::make_unique<StuckEngine>(disk); },
            .on_step =
                [&](int rank, const StepRecord& record,
                    const std::vector<TrainLoop*>& loops) {
                  if (record.step() != 2) return;
                  disk->on_silence = [loop = loops[0]] {
                    loop->Abort(absl::AbortedError("enough"));
                  };
                  disk->is_stuck = true;
                }});
  EXPECT_EQ(run.status(), absl::AbortedError("enough"));
  EXPECT_GT(disk->cancelled, 0) << "the move ended by itself";
  EXPECT_TRUE(run.files_left.empty());
  EXPECT_EQ(run.bytes_left, 0u);
}

}  // namespace
}  // namespace troupe
