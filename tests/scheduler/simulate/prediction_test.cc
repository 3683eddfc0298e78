#include "scheduler/simulate/prediction.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "proto/plan/roles.h"
#include "scheduler/simulate/gpu_scratch.h"
#include "scheduler/simulate/scratch_bytes.h"
#include "tests/proto/plan/made_roles.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Predict, OneRankComputesAllTheTime) {
  const Plan plan = ExamplePlan(ExampleJob({.micro_batches = 2}));
  const Prediction& prediction = plan.prediction();
  const RankPrediction& rank = prediction.ranks(0);
  EXPECT_EQ(rank.bytes_sent_per_step(), 0);
  EXPECT_EQ(rank.exposed_communication_seconds(), 0);
  EXPECT_NEAR(rank.compute_seconds(), prediction.step_seconds(), 1e-6);
  EXPECT_DOUBLE_EQ(prediction.tokens_per_second(),
                   static_cast<double>(plan.derived().tokens_per_step()) /
                       prediction.step_seconds());
  EXPECT_DOUBLE_EQ(prediction.model_flops_utilization(),
                   plan.derived().model_flops_per_token() *
                       prediction.tokens_per_second() / 1e9);
  EXPECT_GT(prediction.model_flops_utilization(), 0);
  EXPECT_LT(prediction.model_flops_utilization(), 1);
  EXPECT_THAT(prediction.limited_by(),
              StartsWith("compute: 100 % of the step; largest share: block "
                         "forward/backward matrix products"));
}

// It is of the machine as it was calibrated, and says how that is now.
TEST(Predict, SaysHowTheMachineIs) {
  const Plan plan = ExamplePlan(ExampleJob({}));
  EXPECT_FALSE(plan.prediction().has_machine());
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  workers[0].mutable_machine()->set_stolen_share(0.5);
  const Prediction prediction = Predict(plan, workers);
  EXPECT_EQ(prediction.step_seconds(), plan.prediction().step_seconds());
  EXPECT_DOUBLE_EQ(prediction.machine().slower(), 1);
}

TEST(Predict, CountsBytesByTheRing) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 4}));
  // All gradients and the scalars, 2 (D-1)/D each.
  int64_t gradients = 0;
  for (const Unit& unit : plan.units()) gradients += 4 * unit.flat_elements();
  for (const RankPrediction& rank : plan.prediction().ranks()) {
    EXPECT_EQ(rank.bytes_sent_per_step(), (gradients + 40) * 3 / 2);
  }
}

TEST(Predict, MemoryIsThatOfTheSlots) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  const RankPrediction& rank = plan.prediction().ranks(1);
  int64_t slots = 0;
  for (const Slot& slot : RoleOf(plan, 1).slots()) slots += slot.bytes();
  int64_t items = 0;
  for (const MemoryItem& item : rank.memory()) items += item.bytes();
  EXPECT_EQ(items, slots);
  EXPECT_EQ(rank.peak_bytes(), BytesIn(RoleOf(plan, 1), DEVICE));
  EXPECT_EQ(rank.budgets(0).bytes(), int64_t{1} << 30);
}

// With what the kernels take; what lies on a GPU is no memory of the process.
TEST(Predict, ResidentIsWhatLiesOnTheHost) {
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  workers[0].set_process_bytes(1000);
  const Plan plan = ExamplePlan(ExampleJob({}));
  int64_t on_device = 0;
  int64_t elsewhere = 0;
  for (const Slot& slot : plan.roles(0).slots()) {
    (slot.tier() == DEVICE ? on_device : elsewhere) += slot.bytes();
  }
  const RankPrediction on_cpu = Predict(plan, workers).ranks(0);
  EXPECT_GT(on_cpu.scratch_bytes(), 0);
  EXPECT_EQ(on_cpu.resident_bytes(),
            1000 + kRankBytes + on_device + elsewhere + on_cpu.scratch_bytes());
  workers[0].mutable_gpu()->set_uuid("x");
  const RankPrediction on_gpu = Predict(plan, workers).ranks(0);
  EXPECT_EQ(on_gpu.scratch_bytes(), 0);
  EXPECT_EQ(on_gpu.resident_bytes(), 1000 + kRankBytes + elsewhere);
  // What kernels take there are items of their own.
  int64_t beside = 0;
  for (const MemoryItem& item : GpuScratchItems(plan)) beside += item.bytes();
  EXPECT_GT(beside, 0);
  EXPECT_EQ(on_gpu.peak_bytes(), on_device + beside);
  EXPECT_EQ(on_gpu.memory_size(),
            on_cpu.memory_size() + GpuScratchItems(plan).size());
  EXPECT_EQ(on_gpu.memory(on_gpu.memory_size() - 1).item(), "kernel_scratch");
}

TEST(Predict, SaysThatFp16SavesMemoryOnly) {
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  JobSpec job = ExampleJob({});
  job.mutable_training()->set_precision("fp16");
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(Predict(plan, workers).limited_by(),
              HasSubstr("; products in fp16 are computed in f32: fp16 saves "
                        "memory here, not time"));
  Calibration& calibration = *workers[0].mutable_calibration();
  MatmulRate bf16 = calibration.matmul(0);
  bf16.set_dtype(BF16);
  bf16.set_flops_per_second(4 * bf16.flops_per_second());
  *calibration.add_matmul() = bf16;
  EXPECT_THAT(Predict(plan, workers).limited_by(),
              HasSubstr("fp16 saves memory here, bf16 would be faster"));
  workers[0].mutable_gpu();  // has instructions for it
  EXPECT_THAT(Predict(plan, workers).limited_by(), Not(HasSubstr("fp16")));
}

TEST(Predict, UtilizationIsOfTheDatasheetWhereThatIsKnown) {
  const Plan plan = ExamplePlan(ExampleJob({.micro_batches = 2}));
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  DatasheetRate& stated = *workers[0].add_datasheet();
  stated.set_dtype(F32);
  stated.set_flops_per_second(4e9);
  const Prediction prediction = Predict(plan, workers);
  EXPECT_EQ(plan.prediction().datasheet_flops_per_second(), 0);
  EXPECT_EQ(prediction.datasheet_flops_per_second(), 4e9);
  EXPECT_EQ(prediction.step_seconds(), plan.prediction().step_seconds());
  EXPECT_DOUBLE_EQ(prediction.model_flops_utilization(),
                   plan.prediction().model_flops_utilization() / 4);
}

TEST(Predict, SaysWhereBf16CostsTime) {
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  Calibration& calibration = *workers[0].mutable_calibration();
  MatmulRate bf16 = calibration.matmul(0);
  bf16.set_dtype(BF16);
  bf16.set_flops_per_second(0.9 * bf16.flops_per_second());
  *calibration.add_matmul() = bf16;
  JobSpec job = ExampleJob({});
  EXPECT_THAT(Predict(ExamplePlan(job), workers).limited_by(),
              Not(HasSubstr("bf16")));
  job.mutable_training()->set_precision("bf16");
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(Predict(plan, workers).limited_by(),
              HasSubstr("; products in bf16 at 0.90 of f32's rate, attention "
                        "at 1.00: bf16 saves memory here, f32 would be "
                        "faster"));
  calibration.mutable_matmul(1)->set_flops_per_second(
      2 * calibration.matmul(0).flops_per_second());
  const Prediction faster = Predict(plan, workers);
  EXPECT_THAT(faster.limited_by(), Not(HasSubstr("bf16")));
  EXPECT_EQ(
      faster.ranks(0).scratch_bytes(),
      ScratchBytesOf(plan, {.threads = 1, .bf16_instructions = true}).total());
}

TEST(Predict, ASlowLinkIsWhatLimits) {
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  for (WorkerDescription& worker : workers) {
    worker.mutable_calibration()->mutable_loopback()->set_bytes_per_second(1e6);
  }
  const Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  const Prediction prediction = Predict(plan, workers);
  EXPECT_THAT(prediction.limited_by(), StartsWith("communication: "));
  const RankPrediction& rank = prediction.ranks(0);
  EXPECT_GT(rank.exposed_communication_seconds(), rank.compute_seconds());
  EXPECT_LE(rank.exposed_communication_seconds() + rank.compute_seconds(),
            prediction.step_seconds() + 1e-9);
}

TEST(Predict, TheBubbleIsWhatComputeLanesDoNotDo) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  const Prediction prediction = Predict(plan, ExampleWorkers(2));
  double busy = 0;
  for (const RankPrediction& rank : prediction.ranks()) {
    busy += rank.compute_seconds();
  }
  const double all = 2 * prediction.step_seconds();
  EXPECT_NEAR(prediction.bubble_of_total(), 1 - busy / all, 1e-9);
  EXPECT_NEAR(prediction.bubble_of_ideal(), all / busy - 1, 1e-9);
  EXPECT_GT(prediction.bubble_of_total(), 0);
}

// The second rank takes what the first has made, unit for unit: at any time one
// of them waits.
Plan TwoStages() {
  Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  const Plan places = PlanOfPlaces(2);
  *plan.mutable_mesh() = places.mesh();
  *plan.mutable_groups() = places.groups();
  *plan.mutable_roles() = places.roles();
  const char* const texts[] = {"F u1 m0\nS u1 m0 p1 g0 ^0",
                               "V u1 m0 p0 g0\nF u2 m0 ^0\nA g0 ^1"};
  for (int r = 0; r < 2; ++r) {
    Program& train = *plan.mutable_roles(r)->add_programs();
    train = *ParseProgram(texts[r]);
    train.set_kind(Program::TRAIN);
  }
  *ProgramOf(plan, 0, Program::TRAIN).add_instructions() =
      *ParseInstruction("A g0 ^0,1");
  return plan;
}

TEST(Predict, SaysWhatAPipelineWaits) {
  const Plan plan = TwoStages();
  const Prediction prediction = Predict(plan, ExampleWorkers(2));
  EXPECT_NEAR(prediction.bubble_of_total(), 0.5, 0.1);
  EXPECT_NEAR(prediction.bubble_of_ideal(), 1, 0.4);
  EXPECT_THAT(prediction.limited_by(),
              StartsWith("pipeline bubble: ranks wait for each other "));
  EXPECT_EQ(prediction.ranks(0).bytes_sent_per_step(),
            plan.units(1).activation_bytes() + 40);
  EXPECT_EQ(prediction.ranks(1).bytes_sent_per_step(), 40);
}

TEST(Predict, RemarksOnSharedCoresAndDefaultRates) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 4}));
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  for (WorkerDescription& worker : workers) {
    worker.set_host_cores(2);
    worker.clear_calibration();
  }
  const std::string limited_by = Predict(plan, workers).limited_by();
  EXPECT_THAT(limited_by, HasSubstr("4 threads share the 2 cores of host"));
  EXPECT_THAT(limited_by, HasSubstr("a worker sent no calibration"));
}

TEST(Predict, MoreWorkersAreFaster) {
  JobSpec job = ExampleJob({.micro_batches = 8, .micro_batch_size = 4});
  double before = 1e9;
  for (const int data : {1, 2, 4, 8}) {
    job.mutable_parallelism()->set_data(data);
    const double step = ExamplePlan(job).prediction().step_seconds();
    EXPECT_LT(step, before) << data;
    before = step;
  }
}

// Four ranks, each with one of four experts.
JobSpec ExpertsJob(const std::vector<double>& load) {
  JobSpec job = ExampleJob({.data = 4});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("mixtral");
  model.set_intermediate_size(640);
  model.set_num_experts(4);
  job.mutable_parallelism()->set_expert(4);
  if (load.empty()) return job;
  ExpertsSpec& experts = *model.mutable_experts();
  experts.set_load("measured");
  for (const int unit : {1, 2}) {
    MeasuredLoad& measured = *experts.add_measured();
    measured.set_unit(unit);
    measured.mutable_load()->Assign(load.begin(), load.end());
  }
  return job;
}

TEST(Predict, FollowsTheBusiestOfTheRanksThatShareExperts) {
  const Prediction even = ExamplePlan(ExpertsJob({})).prediction();
  const Prediction same = ExamplePlan(ExpertsJob({1, 1, 1, 1})).prediction();
  const Prediction more = ExamplePlan(ExpertsJob({2, 1, 1, 0})).prediction();
  const Prediction all = ExamplePlan(ExpertsJob({0, 4, 0, 0})).prediction();
  EXPECT_DOUBLE_EQ(same.step_seconds(), even.step_seconds());
  EXPECT_GT(more.step_seconds(), 1.1 * even.step_seconds());
  EXPECT_GT(all.step_seconds(), 1.1 * more.step_seconds());
  // What the worst routing takes does not depend on what is expected.
  for (const Prediction& prediction : {even, more, all}) {
    EXPECT_DOUBLE_EQ(prediction.worst_routing_seconds(), all.step_seconds());
  }
  // Nor do the bytes that a rank sends, which are the mean of all.
  EXPECT_EQ(more.ranks(0).bytes_sent_per_step(),
            even.ranks(0).bytes_sent_per_step());
}

TEST(Predict, OfOneRankWithAllExpertsThereIsNoWorstRouting) {
  JobSpec job = ExpertsJob({});
  job.mutable_parallelism()->clear_expert();
  EXPECT_EQ(ExamplePlan(job).prediction().worst_routing_seconds(), 0);
}

}  // namespace
}  // namespace troupe
