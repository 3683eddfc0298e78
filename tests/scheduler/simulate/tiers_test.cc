// What tiers of memory cost, from single moves to the sentence for people.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/find_program.h"
#include "proto/plan/memory.h"
#include "proto/plan/operand.h"
#include "proto/plan/tier_traffic.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/prediction.h"
#include "scheduler/simulate/rates.h"
#include "scheduler/simulate/simulate.h"
#include "scheduler/simulate/usage.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

JobSpec Job(const std::string& tier, int data = 1) {
  JobSpec job = ExampleJob({.data = data, .micro_batches = 2, .blocks = 3});
  job.mutable_memory()->set_optimizer(tier);
  job.mutable_training()->set_gradient_clipping(0);
  return job;
}

constexpr double kReadLatency = 50e-6;
constexpr double kWriteLatency = 80e-6;
// What a latency leaves behind that is added and taken away again.
constexpr double kTiny = 1e-18;

std::vector<WorkerDescription> Workers(int count) {
  std::vector<WorkerDescription> workers = ExampleWorkers(count);
  for (WorkerDescription& worker : workers) {
    worker.clear_budgets();
    Calibration& calibration = *worker.mutable_calibration();
    calibration.set_host_bytes_per_second(2e9);
    calibration.set_nvme_read_bytes_per_second(4e8);
    calibration.set_nvme_write_bytes_per_second(1e8);
    calibration.set_nvme_read_latency_us(kReadLatency * 1e6);
    calibration.set_nvme_write_latency_us(kWriteLatency * 1e6);
  }
  return workers;
}

// Seconds for each byte of the first move of this kind on the lane, behind its
// latency; of a disk's, in whole blocks.
double SecondsForByte(const Plan& plan,
                      const std::vector<WorkerDescription>& workers,
                      Instruction::Kind kind, const char* lane,
                      double latency = 0) {
  const CostModel model(plan, workers);
  for (const Instruction& move :
       FindProgram(plan.roles(0), Program::TRAIN)->instructions()) {
    if (move.kind() != kind || NameOfLane(plan.lanes(), move.lane()) != lane) {
      continue;
    }
    const bool disk = std::string(lane).find("NVME") == 0;
    const int64_t bytes = move.operands(0).bytes();
    EXPECT_NE(bytes % 4096, 0) << "whole blocks are not told from bytes";
    return (model.CostOf(0, move).moving - latency) /
           static_cast<double>(disk ? TierAligned(bytes, NVME) : bytes);
  }
  ADD_FAILURE() << "nothing moves on " << lane;
  return 0;
}

TEST(Tiers, AMoveHasTheRateOfItsWay) {
  const Plan plan = ExamplePlan(Job("nvme"));
  const auto workers = Workers(1);
  EXPECT_DOUBLE_EQ(SecondsForByte(plan, workers, Instruction::FETCH, "TO_HOST"),
                   1 / 2e9);
  EXPECT_DOUBLE_EQ(
      SecondsForByte(plan, workers, Instruction::EVICT, "TO_DEVICE"), 1 / 2e9);
  EXPECT_NEAR(SecondsForByte(plan, workers, Instruction::FETCH, "NVME_READS",
                             kReadLatency),
              1 / 4e8, kTiny);
  EXPECT_NEAR(SecondsForByte(plan, workers, Instruction::EVICT, "NVME_WRITES",
                             kWriteLatency),
              1 / 1e8, kTiny);
}

// Its bandwidth, but each rank's moves have the whole latency.
TEST(Tiers, RanksOfAHostShareItsDisk) {
  const Plan plan = ExamplePlan(Job("nvme", /*data=*/2));
  EXPECT_NEAR(SecondsForByte(plan, Workers(2), Instruction::FETCH, "NVME_READS",
                             kReadLatency),
              2 / 4e8, kTiny);
  auto apart = Workers(2);
  apart[1].set_host("another");
  EXPECT_NEAR(SecondsForByte(plan, apart, Instruction::FETCH, "NVME_READS",
                             kReadLatency),
              1 / 4e8, kTiny);
}

// However fast a disk is, a step waits for the latency of its moves.
TEST(Tiers, SmallMovesWaitForADisksLatency) {
  const Plan plan = ExamplePlan(Job("nvme"));
  std::vector<WorkerDescription> workers = Workers(1);
  Calibration& calibration = *workers[0].mutable_calibration();
  calibration.set_nvme_read_bytes_per_second(1e12);
  calibration.set_nvme_write_bytes_per_second(1e12);
  const auto waits = [&](double latency_us) {
    calibration.set_nvme_read_latency_us(latency_us);
    calibration.set_nvme_write_latency_us(latency_us);
    return Predict(plan, workers).ranks(0).tiers(1).waited_seconds();
  };
  int reads = 0;
  for (const Instruction& move :
       FindProgram(plan.roles(0), Program::TRAIN)->instructions()) {
    reads += NameOfLane(plan.lanes(), move.lane()) == "NVME_READS";
  }
  ASSERT_GT(reads, 1);
  // One read after the other, and nothing takes as long as they do.
  EXPECT_GT(waits(1e5), 0.9 * reads * 0.1);
  EXPECT_LT(waits(1), 1e-3);
}

// The copy of what rests on a disk is read from there; the rest has the rate
// between device and host.
TEST(Tiers, ACheckpointsCopyHasTheRateOfWhereTheStateRests) {
  JobSpec job = Job("nvme");
  job.mutable_checkpoint()->set_directory("/c");
  job.mutable_checkpoint()->set_background(false);
  Plan plan = ExamplePlan(job);
  std::vector<WorkerDescription> workers = Workers(1);
  workers[0].mutable_calibration()->set_nvme_bytes_per_second(5e7);
  const Program& saves = *FindProgram(plan.roles(0), Program::CHECKPOINT);
  const Instruction& snapshot = saves.instructions(IndexOf(saves, "K u1"));
  const double bytes = 4.0 * plan.units(1).flat_elements();
  plan.mutable_job()->mutable_checkpoint()->set_background(true);
  EXPECT_DOUBLE_EQ(CostModel(plan, workers).CostOf(0, snapshot).elementwise,
                   bytes / 2e9 + kReadLatency + 2 * bytes / 4e8);
  plan.mutable_job()->mutable_checkpoint()->set_background(false);
  EXPECT_DOUBLE_EQ(CostModel(plan, workers).CostOf(0, snapshot).elementwise,
                   kReadLatency + 2 * bytes / 4e8 + 3 * bytes / 5e7);
}

// Of a GPU worker the calibration's rate is the GPU's.
TEST(Tiers, AStepOnTheHostHasTheRateOfItsCores) {
  const Plan plan = ExamplePlan(Job("host"));
  std::vector<WorkerDescription> workers = Workers(1);
  const Program& train = *FindProgram(plan.roles(0), Program::TRAIN);
  const Instruction& step = train.instructions(IndexOf(train, "O u1"));
  const double bytes = 8 * 4.0 * plan.units(1).flat_elements();
  EXPECT_DOUBLE_EQ(CostModel(plan, workers).CostOf(0, step).optimizer,
                   bytes / 1e9);
  workers[0].mutable_gpu()->set_uuid("x");
  workers[0].mutable_calibration()->set_optimizer_bytes_per_second(1e12);
  workers[0].set_host_cores(8);
  EXPECT_DOUBLE_EQ(
      CostModel(plan, workers).CostOf(0, step).optimizer,
      bytes / (8 * DefaultCalibration().optimizer_bytes_per_second()));
}

InstructionTimes At(int64_t start, int64_t end) {
  constexpr int64_t kMs = 1000000;
  return {.start = start * kMs, .runs = start * kMs, .end = end * kMs};
}

TEST(Tiers, WhatNeitherComputesNorCommunicatesWaitsForThem) {
  const Program program = *ParseProgram(
      "F u0 m0\nE u0 m0\nR u0 g0\nP u1 @NVME_READS\n"
      "O u1 @OPTIMIZER\nF u1 m0");
  const Usage usage =
      UsageOf(program, AllLanes(),
              {.rank = 0,
               .instructions = {At(0, 10), At(5, 14), At(12, 20), At(5, 25),
                                At(25, 30), At(32, 40)}});
  EXPECT_DOUBLE_EQ(usage.compute_seconds, 18e-3);
  EXPECT_DOUBLE_EQ(usage.exposed_seconds, 8e-3);
  // From 10 to 12 and from 20 to 30.
  EXPECT_DOUBLE_EQ(usage.tier_seconds, 12e-3);
}

// On cores of its own a slow optimizer hides behind backward, in part; on one
// core it takes turns with it.
TEST(Tiers, TheHostsOptimizerRunsBesideBackward) {
  std::vector<WorkerDescription> workers = Workers(1);
  workers[0].mutable_calibration()->set_optimizer_bytes_per_second(1e8);
  workers[0].set_host_cores(2);
  const auto seconds = [&workers](const char* tier) {
    return Predict(ExamplePlan(Job(tier)), workers).step_seconds();
  };
  const double two_cores = seconds("host");
  EXPECT_LT(two_cores, seconds("device"));
  workers[0].set_host_cores(1);
  EXPECT_GT(seconds("host"), two_cores);
}

// Copies of a worker without a GPU, too: its cores make them.
TEST(Tiers, CopiesTakeCoresFromWhatIsComputed) {
  JobSpec job = Job("device");
  job.mutable_memory()->set_gradients("host");
  const Plan plan = ExamplePlan(job);
  std::vector<WorkerDescription> workers = Workers(1);
  workers[0].mutable_calibration()->set_host_bytes_per_second(1e8);
  const CostModel costs(plan, workers);
  double copies = 0;
  for (const Instruction& instruction :
       FindProgram(plan.roles(0), Program::TRAIN)->instructions()) {
    if (IsMove(instruction.kind())) {
      copies += costs.CostOf(0, instruction).total();
    }
  }
  const auto step_seconds = [&](const Plan& of) {
    return Predict(of, workers).step_seconds();
  };
  workers[0].set_host_cores(8);
  EXPECT_GT(step_seconds(ExamplePlan(Job("device"))) + copies,
            1.05 * step_seconds(plan))
      << "beside what is computed";
  workers[0].set_host_cores(1);
  EXPECT_GE(step_seconds(plan),
            0.99 * (step_seconds(ExamplePlan(Job("device"))) + copies))
      << "by turns with it";
}

TEST(Tiers, ASlowDiskIsWhatLimits) {
  std::vector<WorkerDescription> workers = Workers(1);
  workers[0].mutable_calibration()->set_nvme_read_bytes_per_second(1e6);
  const Prediction prediction = Predict(ExamplePlan(Job("nvme")), workers);
  EXPECT_THAT(prediction.limited_by(), HasSubstr("tiers of memory: "));
  // It is no communication.
  EXPECT_EQ(prediction.ranks(0).exposed_communication_seconds(), 0);
  EXPECT_THAT(Predict(ExamplePlan(Job("device")), workers).limited_by(),
              ::testing::Not(HasSubstr("tiers of memory")));
}

// By the rule by which a measured step's waits are found.
TEST(Tiers, WhatEachRankWaitsForThemIsPredicted) {
  std::vector<WorkerDescription> workers = Workers(2);
  const Plan plan = ExamplePlan(Job("nvme", /*data=*/2));
  const Prediction prediction = Predict(plan, workers);
  const Timeline timeline = StepTimeline(plan, PredictStep(plan, workers));
  ASSERT_EQ(timeline.ranks_size(), 2);
  for (int rank = 0; rank < 2; ++rank) {
    const auto expected = TrafficOf(*FindProgram(plan.roles(0), Program::TRAIN),
                                    plan.lanes(), timeline.ranks(rank));
    const auto& tiers = prediction.ranks(rank).tiers();
    ASSERT_EQ(tiers.size(), 2);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(tiers[i].ShortDebugString(), expected[i].ShortDebugString());
      EXPECT_GT(tiers[i].bytes_in(), 0);
      EXPECT_GT(tiers[i].bytes_out(), 0);
    }
  }
  // A slower disk is waited for longer.
  const auto waits_for_disk = [&] {
    return Predict(plan, workers).ranks(0).tiers(1).waited_seconds();
  };
  const double before = waits_for_disk();
  for (WorkerDescription& worker : workers) {
    worker.mutable_calibration()->set_nvme_read_bytes_per_second(1e7);
  }
  EXPECT_GT(waits_for_disk(), before);
  EXPECT_TRUE(
      Predict(ExamplePlan(Job("device")), workers).ranks(0).tiers().empty());
}

// What comes down by more moves takes no less time.
TEST(Tiers, WhateverRestsBelowIsPredicted) {
  const auto seconds = [](const auto& rest) {
    JobSpec job = Job("device");
    rest(*job.mutable_memory());
    return Predict(ExamplePlan(job), Workers(1)).step_seconds();
  };
  const double device = seconds([](MemorySpec&) {});
  const double parameters =
      seconds([](MemorySpec& memory) { memory.set_parameters("host"); });
  const double gradients =
      seconds([](MemorySpec& memory) { memory.set_gradients("host"); });
  const double activations =
      seconds([](MemorySpec& memory) { memory.set_activations("host"); });
  const double on_disk =
      seconds([](MemorySpec& memory) { memory.set_activations("nvme"); });
  EXPECT_GT(parameters, device);
  EXPECT_GE(gradients, device);
  EXPECT_GE(activations, device);
  EXPECT_GT(on_disk, activations);
}

TEST(Tiers, EachTiersMemoryIsPredicted) {
  const Plan plan = ExamplePlan(Job("nvme"));
  const Prediction prediction = Predict(plan, Workers(1));
  int64_t on_disk = 0;
  int64_t fetched = 0;
  int64_t beside = 0;
  for (const MemoryItem& item : prediction.ranks(0).memory()) {
    if (item.tier() == NVME) {
      EXPECT_EQ(item.item(), "optimizer_moments");
      on_disk += item.bytes();
    }
    if (item.tier() != HOST) continue;
    (item.item() == "fetched" ? fetched : beside) += item.bytes();
    if (item.item() != "fetched") EXPECT_EQ(item.item(), "checksums");
  }
  EXPECT_EQ(beside, ChecksumBytes(on_disk));
  EXPECT_GE(on_disk, 8 * plan.derived().parameters());
  EXPECT_GT(fetched, 0);
}

}  // namespace
}  // namespace troupe
