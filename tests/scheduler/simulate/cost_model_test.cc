#include "scheduler/simulate/cost_model.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/find_program.h"
#include "proto/plan/optimizer_states.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

Cost CostOf(const CostModel& model, const char* instruction) {
  return model.CostOf(0, *ParseInstruction(instruction));
}

// What carries all groups of the first kind.
void SetBackend(const char* backend, Plan& plan, int group = 0) {
  Group& of = *plan.mutable_groups(group);
  of.clear_carriers();
  of.add_carriers()->set_backend(backend);
}

// With every rate 1e9, seconds are counts of the plan's Work in 1e-9.
TEST(CostModel, PassesCostTheirWork) {
  const Plan plan = ExamplePlan(ExampleJob({}));
  const CostModel model(plan, ExampleWorkers(1));
  const Work& forward = plan.units(1).forward();
  const Cost cost = CostOf(model, "F u1 m0");
  EXPECT_DOUBLE_EQ(cost.matmul, forward.matmul_flops() * 1e-9);
  EXPECT_DOUBLE_EQ(cost.attention, 2 * forward.attention_flops() * 1e-9);
  EXPECT_DOUBLE_EQ(cost.elementwise,
                   (forward.memory_bytes() + forward.elementwise_ops()) * 1e-9);
  EXPECT_EQ(cost.communication, 0);
  EXPECT_DOUBLE_EQ(CostOf(model, "I u1 m0").matmul,
                   plan.units(1).backward_input().matmul_flops() * 1e-9);
  EXPECT_DOUBLE_EQ(CostOf(model, "W u3 m0").matmul,
                   plan.units(3).backward_weight().matmul_flops() * 1e-9);
}

TEST(CostModel, StatesCostTheirBytes) {
  const Plan plan = ExamplePlan(ExampleJob({}));
  const CostModel model(plan, ExampleWorkers(1));
  const double bytes = 4.0 * plan.units(1).flat_elements();
  EXPECT_DOUBLE_EQ(CostOf(model, "N u1").elementwise, bytes * 1e-9);
  EXPECT_DOUBLE_EQ(CostOf(model, "O u1").optimizer, 8 * bytes * 1e-9);
  EXPECT_DOUBLE_EQ(CostOf(model, "L m0").elementwise, 128e-9);
}

// Of what a rule keeps, and multiplies: Lion has one state, and Muon five steps
// of three products with each matrix, here at 1e9 flops a second.
TEST(CostModel, StepsCostWhatTheirRulesDo) {
  JobSpec job = ExampleJob({});
  OptimizerGroup& lion = *job.mutable_optimizer()->add_groups();
  lion.add_match("*");
  lion.set_name("lion");
  OptimizerGroup& muon = *job.mutable_optimizer()->add_groups();
  muon.add_match("*.h.0.mlp.c_fc.weight");
  muon.set_name("muon");
  const Plan plan = ExamplePlan(job);
  const CostModel model(plan, ExampleWorkers(1));
  const double bytes = 4.0 * plan.units(2).flat_elements();
  EXPECT_DOUBLE_EQ(CostOf(model, "O u2").optimizer, 6 * bytes * 1e-9);
  EXPECT_EQ(CostOf(model, "O u2").matmul, 0);
  const double products = 5 * (4 * 16 * 16 * 64 + 2 * 16 * 16 * 16);
  EXPECT_DOUBLE_EQ(CostOf(model, "O u1").matmul, products * 1e-9);
}

// Weights and gradients are each read and written, and read again, the weights
// once and the gradients three times; all but the vectors' moments is little.
TEST(CostModel, AdafactorReadsGradientsAgain) {
  JobSpec job = ExampleJob({});
  job.mutable_optimizer()->set_name("adafactor");
  const Plan plan = ExamplePlan(job);
  const CostModel model(plan, ExampleWorkers(1));
  const Unit& unit = plan.units(1);
  const double moments = static_cast<double>(
      StateElements(plan.job().optimizer(), unit, {0, unit.flat_elements()}));
  EXPECT_LT(moments, 0.2 * static_cast<double>(unit.flat_elements()));
  EXPECT_DOUBLE_EQ(CostOf(model, "O u1").optimizer,
                   4 * (8.0 * unit.flat_elements() + 2 * moments) * 1e-9);
}

TEST(CostModel, CollectivesCostTheirRing) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  const CostModel model(plan, ExampleWorkers(2));
  const double bytes =
      4.0 * (plan.units(2).flat_elements() + plan.units(3).flat_elements());
  EXPECT_DOUBLE_EQ(CostOf(model, "R u2-3 g0").communication,
                   2 * 10e-6 + bytes * 1e-9);
  EXPECT_DOUBLE_EQ(CostOf(model, "A g0").communication, 2 * 10e-6 + 40e-9);
  EXPECT_EQ(CollectiveBytes(plan, 0, *ParseInstruction("F u1 m0")), 0);
}

TEST(CostModel, AGroupHasTheRateOfItsBackend) {
  Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  const auto seconds = [&](const char* backend) {
    SetBackend(backend, plan);
    return CostOf(CostModel(plan, workers), "A g0").communication;
  };
  EXPECT_DOUBLE_EQ(seconds("gloo"), 2 * 10e-6 + 40e-9);
  EXPECT_DOUBLE_EQ(seconds("shared_memory"), seconds("gloo"));  // not measured
  for (WorkerDescription& worker : workers) {
    LinkRate& memory = *worker.mutable_calibration()->mutable_shared_memory();
    memory.set_latency_us(1);
    memory.set_bytes_per_second(4e9);
  }
  EXPECT_DOUBLE_EQ(seconds("shared_memory"), 2 * 1e-6 + 10e-9);
  workers[1].set_host("another");
  EXPECT_GT(seconds("gloo"), 2 * 30e-6);
}

// Costs are those of a rank that has its processor to itself.
TEST(CostModel, RanksOfAHostCopyOnItsCores) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 4}));
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  const double alone = CostOf(CostModel(plan, workers), "F u1 m0").total();
  const double ring = CostOf(CostModel(plan, workers), "A g0").total();
  for (WorkerDescription& worker : workers) worker.set_host_cores(2);
  const CostModel crowded(plan, workers);
  EXPECT_DOUBLE_EQ(CostOf(crowded, "F u1 m0").total(), alone);
  EXPECT_GT(CostOf(crowded, "A g0").total(), ring);
  EXPECT_DOUBLE_EQ(crowded.PeakFlopsPerSecond(), 2e9);
}

LinkRate Link(double latency_us, double bytes_per_second) {
  LinkRate link;
  link.set_latency_us(latency_us);
  link.set_bytes_per_second(bytes_per_second);
  return link;
}

TEST(CostModel, TransfersCostLatencyAndBytesOfTheirLink) {
  JobSpec job = ExampleJob({.micro_batches = 2});
  job.mutable_parallelism()->set_pipeline(2);
  Plan plan = ExamplePlan(job);
  ASSERT_EQ(plan.groups(1).name(), "activations");
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  const double bytes = static_cast<double>(plan.units(1).activation_bytes());
  EXPECT_EQ(TransferBytes(plan, *ParseInstruction("S u1 m0 p1 g1")), bytes);
  EXPECT_EQ(TransferBytes(plan, *ParseInstruction("A g0")), 0);
  const auto seconds = [&] {
    const CostModel model(plan, workers);
    const double send = CostOf(model, "S u1 m0 p1 g1").communication;
    const double recv =
        model.CostOf(1, *ParseInstruction("V u1 m0 p0 g1")).communication;
    EXPECT_EQ(send, recv);
    return send;
  };
  EXPECT_DOUBLE_EQ(seconds(), 10e-6 + bytes * 1e-9);
  *workers[0].mutable_calibration()->mutable_shared_memory() = Link(1, 4e9);
  *workers[1].mutable_calibration()->mutable_shared_memory() = Link(2, 8e9);
  SetBackend("shared_memory", plan, 1);
  EXPECT_DOUBLE_EQ(seconds(), 2e-6 + bytes / 4e9);
  SetBackend("gloo", plan, 1);
  workers[1].set_host("another");
  EXPECT_DOUBLE_EQ(seconds(), 30e-6 + bytes / 1.1e9);
  for (auto& worker : workers)
    *worker.mutable_network()->mutable_rate() = Link(4, 25e9);
  EXPECT_DOUBLE_EQ(seconds(), 4e-6 + bytes / 25e9);
}

// Four ranks on two hosts. NCCL's rings leave a host by the links of both of
// its ranks, and what is small goes by its tree. Half of what a rank sends
// stays on its host.
TEST(CostModel, AGroupThatSpansHostsUsesTheirNetwork) {
  Plan plan = ExamplePlan(ExampleJob({.data = 4}));
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  for (int r = 0; r < 4; ++r) {
    workers[r].set_host(r < 2 ? "a" : "b");
    *workers[r].mutable_network()->mutable_rate() = Link(20, 1e8);
    *workers[r].mutable_calibration()->mutable_loopback() = Link(5, 1e9);
  }
  const auto seconds = [&](const char* backend) {
    SetBackend(backend, plan);
    return CostOf(CostModel(plan, workers), "A g0").communication;
  };
  // Gloo sends what is small straight to each rank.
  EXPECT_DOUBLE_EQ(seconds("gloo"), 2 * 20e-6 + 80 / 1e8);
  EXPECT_DOUBLE_EQ(seconds("nccl"), 2 * (20e-6 + 5e-6) + 80 / 2e8);
  for (auto& worker : workers)
    *worker.mutable_network()->mutable_rate() = Link(2, 1e10);
  EXPECT_DOUBLE_EQ(seconds("nccl"),
                   2 * (2e-6 + 5e-6) + 80 / 1e9);  // inside a host
  // There it is the GPUs' link, where that is known.
  for (auto& worker : workers) {
    worker.mutable_gpu()->set_link("PCIe 32.0 GT/s x16");
    *worker.mutable_network()->mutable_rate() = Link(2, 1e12);
  }
  EXPECT_DOUBLE_EQ(seconds("nccl"), 2 * (2e-6 + 10e-6) + 80 / 48e9);
}

TEST(CostModel, SyntheticUnitsTakeTheTimeTheyAreGiven) {
  Plan plan = ExamplePlan(ExampleJob({}));
  Unit& unit = *plan.mutable_units(1);
  unit.set_kind(Unit::SYNTHETIC);
  unit.clear_table();
  for (Work* work : {unit.mutable_forward(), unit.mutable_backward_weight()}) {
    work->Clear();
    work->set_wait_seconds(0.018);
  }
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  workers[0].set_threads(4);
  workers[0].mutable_calibration()->set_instruction_overhead_us(5);
  const CostModel model(plan, workers);
  const Cost cost = CostOf(model, "F u1 m0");
  EXPECT_EQ(cost.waiting, 0.018);
  EXPECT_EQ(cost.total(), 0.018);
  EXPECT_EQ(CostOf(model, "W u1 m0").total(), 0.018);
}

TEST(CostModel, ACheckpointsCopyHasTheRateOfItsTier) {
  JobSpec job = ExampleJob({});
  job.mutable_checkpoint()->set_directory("/checkpoints");
  job.mutable_checkpoint()->set_background(false);
  Plan plan = ExamplePlan(job);
  const Program& saves = *FindProgram(plan.roles(0), Program::CHECKPOINT);
  const Instruction& copy = saves.instructions(IndexOf(saves, "K u1"));
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  workers[0].mutable_calibration()->set_host_bytes_per_second(2e7);
  workers[0].mutable_calibration()->set_nvme_bytes_per_second(1e7);
  const double bytes = 3 * 4.0 * plan.units(1).flat_elements();
  plan.mutable_job()->mutable_checkpoint()->set_background(true);
  EXPECT_DOUBLE_EQ(CostModel(plan, workers).CostOf(0, copy).elementwise,
                   bytes / 2e7);
  plan.mutable_job()->mutable_checkpoint()->set_background(false);
  EXPECT_DOUBLE_EQ(CostModel(plan, workers).CostOf(0, copy).elementwise,
                   bytes / 1e7);
}

TEST(CostModel, MoreThreadsThanWereMeasuredScale) {
  const Plan plan = ExamplePlan(ExampleJob({}));
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  const double one = CostOf(CostModel(plan, workers), "F u1 m0").total();
  workers[0].set_threads(4);
  workers[0].set_host_cores(8);
  const CostModel model(plan, workers);
  EXPECT_DOUBLE_EQ(CostOf(model, "F u1 m0").total(), one / 4);
  EXPECT_DOUBLE_EQ(model.PeakFlopsPerSecond(), 4e9);
}

// Of many workers the slowest calibration stands for all, but not for what they
// could do together, and not for their links.
TEST(CostModel, AStandInGivesItsCalibrationOnly) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 70}));
  std::vector<WorkerDescription> workers = ExampleWorkers(70);
  double peak = 0;
  for (int r = 0; r < 70; ++r) {
    const double rate = r == 7 ? 1e8 : 1e9 + r;
    peak += rate;
    workers[r].mutable_calibration()->mutable_matmul(0)->set_flops_per_second(
        rate);
    workers[r].set_host(r == 9 ? "far" : "near");
    *workers[r].mutable_network()->mutable_rate() =
        Link(30, r == 9 ? 1e6 : 1e9);
  }
  const CostModel model(plan, workers);
  EXPECT_NEAR(model.PeakFlopsPerSecond(), peak, 1);
  EXPECT_GT(CostOf(model, "F u1 m0").matmul,
            5 * CostOf(CostModel(plan, ExampleWorkers(70)), "F u1 m0").matmul);
  EXPECT_GT(CostOf(model, "R u2-3 g0").communication, 1e-3);
}

TEST(CostModel, SaysWhereNothingWasMeasured) {
  const Plan plan = ExamplePlan(ExampleJob({}));
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  EXPECT_FALSE(CostModel(plan, workers).uses_default());
  workers[0].clear_calibration();
  const CostModel model(plan, workers);
  EXPECT_TRUE(model.uses_default());
  EXPECT_GT(CostOf(model, "F u1 m0").total(), 0);
}

TEST(CostModel, EveryInstructionHasTheLanesOverhead) {
  const Plan plan = ExamplePlan(ExampleJob({}));
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  workers[0].mutable_calibration()->set_instruction_overhead_us(5);
  EXPECT_DOUBLE_EQ(CostOf(CostModel(plan, workers), "L m0").overhead, 5e-6);
}

// A push takes as long as the busier of a replica's link, over which all D
// bytes go, and of a server's, over which those of all n replicas to one of k
// servers do: max(D / B, n D / (k B)). So does a pull, the other way.
TEST(CostModel, PushesAndPullsTakeTheBusiestLink) {
  for (const auto& [replicas, servers] :
       {std::pair(4, 2), {2, 4}, {6, 2}, {3, 3}}) {
    JobSpec job = ExampleJob({.data = replicas});
    job.mutable_parallelism()->set_servers(servers);
    const Plan plan = ExamplePlan(job);
    std::vector<WorkerDescription> workers = ExampleWorkers(replicas + servers);
    for (size_t r = 0; r < workers.size(); ++r) {
      workers[r].set_host(std::string(r + 1, 'h'));
      *workers[r].mutable_network()->mutable_rate() = Link(20, 1e8);
    }
    const CostModel model(plan, workers);
    const int64_t lines = plan.units(1).flat_elements() / 16;
    const double slice =  // the largest
        64.0 * static_cast<double>((lines + servers - 1) / servers);
    const double all = 64.0 * static_cast<double>(lines);
    const double seconds = 2 * 20e-6 + std::max(all, replicas * slice) / 1e8;
    for (const int rank : {0, replicas}) {
      const auto of = [&](const char* text) {
        return model.CostOf(rank, *ParseInstruction(text));
      };
      EXPECT_DOUBLE_EQ(of("U u1 g0").communication, seconds);
      EXPECT_DOUBLE_EQ(of("D u1 g2").communication, seconds);
    }
    const Cost push = model.CostOf(0, *ParseInstruction("U u1 g0"));
    EXPECT_EQ(push.bytes[NETWORK_OUT], all);
    EXPECT_EQ(push.bytes[NETWORK_IN], 0);
    const Cost serves = model.CostOf(replicas, *ParseInstruction("U u1 g0"));
    EXPECT_EQ(serves.bytes[NETWORK_IN], replicas * slice);
    EXPECT_DOUBLE_EQ(serves.elementwise, (3 * replicas - 1) * slice * 1e-9);
  }
}

}  // namespace
}  // namespace troupe
