// The promise, for parameter servers: replicas that push gradients to servers
// and pull weights from them train the model that a single rank trains; their
// checkpoints are those of any plan; and what they send is what the plan says.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/layout.h"
#include "proto/plan/precision.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/trained.h"
#include "scheduler/pipelines/pipelines.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/state_difference.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

std::string NewDirectory(const std::string& name) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  return directory;
}

// Twelve micro-batches a step; tables are tied in GPT-2.
JobSpec Job(const std::string& architecture = "gpt2") {
  JobSpec job = WithFewSteps(TensorJob({.architecture = architecture,
                                        .tied = architecture == "gpt2",
                                        .dropout = 0.1}));
  job.mutable_model()->set_num_hidden_layers(4);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_global_batch_size(12);
  return job;
}

JobSpec Served(const JobSpec& job, const JobCut& cut, int servers) {
  JobSpec served = CutJob(job, cut);
  served.mutable_parallelism()->set_servers(servers);
  return served;
}

TrainingRun TrainServed(const JobSpec& job, const std::string& backend) {
  return Train(job, {.ranks = RanksNeeded(job), .backend = backend});
}

struct ServedCase {
  const char* name;
  int servers = 1;
  JobCut cut;
  std::string architecture = "gpt2";
  std::string backend = "in_process";
  std::vector<int> micro_batches = {};  // of replicas
  std::string optimizer = "device";
  std::string recompute = "none";
  double clipping = 1;
  std::string parameters = "device";
  std::string gradients = "device";
};

class Servers : public testing::TestWithParam<ServedCase> {};

TEST_P(Servers, TrainTheSameModel) {
  const ServedCase& served = GetParam();
  JobSpec job = Job(served.architecture);
  job.mutable_training()->set_gradient_clipping(served.clipping);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.1);
  job = Served(job, served.cut, served.servers);
  for (const int count : served.micro_batches) {
    job.mutable_parallelism()->add_micro_batches(count);
  }
  job.mutable_memory()->set_optimizer(served.optimizer);
  job.mutable_memory()->set_parameters(served.parameters);
  job.mutable_memory()->set_gradients(served.gradients);
  job.mutable_memory()->mutable_recompute()->set_mode(served.recompute);
  EXPECT_EQ(RanksNeeded(job),
            served.cut.pipeline * (served.cut.data + served.servers));
  ExpectSameTraining(TrainServed(job, served.backend), reference, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    InProcess, Servers,
    testing::Values(
        ServedCase{"one", 1, {.data = 2}},
        ServedCase{"one_of_one", 1, {.data = 1}},
        ServedCase{"two", 2, {.data = 2}, "llama"},
        ServedCase{"two_of_three", 2, {.data = 3}, "gpt2", "shared_memory"},
        ServedCase{"two_of_four", 2, {.data = 4}, "llama", "gloo"},
        ServedCase{"three_of_four", 3, {.data = 4}},
        ServedCase{"uneven", 2, {.data = 2}, "gpt2", "in_process", {9, 3}},
        ServedCase{"unclipped",
                   2,
                   {.data = 2},
                   "gpt2",
                   "in_process",
                   {},
                   "device",
                   "none",
                   0},
        ServedCase{"on_host", 2, {.data = 2}, "gpt2", "in_process", {}, "host"},
        ServedCase{"on_host_unclipped",
                   1,
                   {.data = 2},
                   "llama",
                   "in_process",
                   {},
                   "host",
                   "full",
                   0},
        ServedCase{"parameters_on_host",
                   2,
                   {.data = 2},
                   "gpt2",
                   "in_process",
                   {},
                   "device",
                   "none",
                   1,
                   "host"},
        ServedCase{"all_on_host",
                   2,
                   {.data = 2},
                   "gpt2",
                   "in_process",
                   {},
                   "host",
                   "none",
                   0,
                   "host",
                   "host"},
        ServedCase{
            "on_nvme", 1, {.data = 2}, "llama", "in_process", {}, "nvme"},
        // Both ends of the pipeline have the tied table.
        ServedCase{"pipeline", 1, {.pipeline = 2, .data = 2}},
        ServedCase{"pipeline_uneven",
                   2,
                   {.pipeline = 2, .data = 2},
                   "llama",
                   "in_process",
                   {8, 4}},
        ServedCase{"pipeline_on_host",
                   1,
                   {.pipeline = 2, .data = 2},
                   "gpt2",
                   "in_process",
                   {},
                   "host"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ServersOfPipelines, TrainTheSameModelWithEachSchedule) {
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.asynchronous) continue;
    SCOPED_TRACE(pipeline.name);
    const JobSpec job = Job("gpt2");
    const JobCut cut = {
        .schedule = std::string(pipeline.name), .pipeline = 2, .data = 1};
    ExpectSameTraining(TrainServed(Served(job, cut, 1), "in_process"),
                       OneRank(job), kTolerance);
  }
}

TEST(ServersBf16, TrainTheSameModelButForItsRounding) {
  JobSpec job = Job();
  job.mutable_training()->set_precision("bf16");
  ExpectSameTraining(TrainServed(Served(job, {.data = 2}, 2), "in_process"),
                     OneRank(job), 1e-2);
}

// Units of matrices that are updated whole, and an average of the weights.
TEST(ServersMuon, TrainTheSameModel) {
  JobSpec job = Job();
  OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
  group.add_match("*.mlp.*.weight");
  group.set_name("muon");
  job.mutable_optimizer()->mutable_ema();
  ExpectSameTraining(TrainServed(Served(job, {.data = 2}, 2), "in_process"),
                     OneRank(job), Tolerance(1e-4, 1e-3));
}

// Sums are taken in the order of the replicas, whatever carries them.
TEST(ServersBits, AreTheSameOverEachBackendAndFromRunToRun) {
  const JobSpec job = Served(Job(), {.data = 3}, 2);
  const TrainingRun first = TrainServed(job, "in_process");
  ASSERT_TRUE(first.status().ok()) << first.status();
  for (const char* const backend : {"in_process", "shared_memory", "gloo"}) {
    SCOPED_TRACE(backend);
    const TrainingRun run = TrainServed(job, backend);
    ASSERT_TRUE(run.status().ok()) << run.status();
    ASSERT_EQ(run.steps.size(), 5u);
    for (const std::vector<StepRecord>& steps : run.steps) {
      ASSERT_EQ(steps.size(), first.steps[0].size());
      for (size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(steps[i].loss(), first.steps[0][i].loss());
        EXPECT_EQ(steps[i].grad_norm(), first.steps[0][i].grad_norm());
      }
    }
  }
}

TEST(ServersResume, AnyPlanContinuesWhatAnotherBegan) {
  constexpr int kSteps = 12;
  for (const std::string precision : {"f32", "bf16"}) {
    JobSpec job = Job();
    job.mutable_training()->set_steps(kSteps);
    job.mutable_training()->set_precision(precision);
    job.mutable_training()->set_validate_every(0);
    job.mutable_checkpoint()->set_directory(NewDirectory("servers_whole"));
    const std::string whole =
        CheckpointPath(job.checkpoint().directory(), kSteps);
    ASSERT_TRUE(Train(job, {}).status().ok());
    const std::string directory = NewDirectory("servers_pieces");
    job.mutable_checkpoint()->set_directory(directory);
    std::vector<JobSpec> plans = {Served(job, {.data = 2}, 2),
                                  CutJob(job, {.data = 4, .zero = 3}),
                                  Served(job, {.pipeline = 2, .data = 2}, 1),
                                  CutJob(job, {.tensor = 2, .pipeline = 2}),
                                  Served(job, {.data = 3}, 1),
                                  job};
    plans[2].mutable_checkpoint()->set_background(true);
    int64_t done = 0;
    for (JobSpec& part : plans) {
      SCOPED_TRACE(absl::StrCat(precision, " from step ", done));
      done += kSteps / static_cast<int>(plans.size());
      part.mutable_training()->set_stop_after(done);
      const TrainingRun run =
          Train(part, {.ranks = RanksNeeded(part),
                       .resume = &part == &plans[0] ? "" : "latest"});
      ASSERT_TRUE(run.status().ok()) << run.status();
    }
    const StateDifference states =
        CompareStates(CheckpointPath(directory, kSteps), whole);
    EXPECT_LT(states.weights, precision == "f32" ? 1e-4 : 1e-2);
    EXPECT_LT(states.moments, precision == "f32" ? 1e-4 : 1e-1);
  }
}

// A replica sends all gradients once, to their servers; a server its slices of
// weights to each replica. Beside that there are the step's sums.
TEST(ServersBytes, AreThoseOfTheFormulaAndOfThePrediction) {
  for (const std::string precision : {"f32", "bf16"}) {
    JobSpec job = Job("llama");
    job.mutable_training()->set_precision(precision);
    job.mutable_training()->set_validate_every(0);
    constexpr int kReplicas = 3;
    constexpr int kServers = 2;
    const TrainingRun run =
        TrainServed(Served(job, {.data = kReplicas}, kServers), "in_process");
    ASSERT_TRUE(run.status().ok()) << run.status();
    const TrainingSpec& training = run.plan.job().training();
    for (int rank = 0; rank < kReplicas + kServers; ++rank) {
      int64_t bytes = 0;
      for (const Unit& unit : run.plan.units()) {
        const int64_t elements = TrainedElements(unit);
        bytes += rank < kReplicas
                     ? elements * BytesOfElement(GradientType(training))
                     : EvenLines(elements,
                                 {.index = rank - kReplicas, .count = kServers})
                               .size() *
                           kReplicas * BytesOfElement(ComputeType(training));
      }
      const int64_t sums = 8 * 5 * 2;  // no more than this of them is sent
      const auto sent = static_cast<int64_t>(run.sent_bytes[rank][2] -
                                             run.sent_bytes[rank][1]);
      EXPECT_GE(sent, bytes) << "rank " << rank;
      EXPECT_LE(sent, bytes + sums) << "rank " << rank;
      // Of all servers the plan predicts the first one's: a line of a unit
      // more.
      const int64_t lines = 64 * kReplicas * run.plan.units_size();
      const int64_t predicted =
          run.plan.prediction().ranks(rank).bytes_sent_per_step();
      EXPECT_GE(predicted, bytes) << "rank " << rank;
      EXPECT_LE(predicted, bytes + sums + lines) << "rank " << rank;
    }
  }
}

// Replicas that serve each other are ZeRO's first level: the same plan.
TEST(ServersOnWorkers, AreZeroOne) {
  JobSpec job = CutJob(Job(), {.data = 3});
  job.mutable_parallelism()->clear_zero();
  job.mutable_servers()->set_on("workers");
  auto served = CompileForThreads(job, 3);
  ASSERT_TRUE(served.ok()) << served.status();
  job.clear_servers();
  job.mutable_parallelism()->set_zero(1);
  const auto dealt = CompileForThreads(job, 3);
  ASSERT_TRUE(dealt.ok()) << dealt.status();
  ASSERT_EQ(served->roles_size(), dealt->roles_size());
  for (int r = 0; r < served->roles_size(); ++r) {
    EXPECT_EQ(served->roles(r).SerializeAsString(),
              dealt->roles(r).SerializeAsString());
  }
}

// Replicas have no optimizer states, servers no activations.
TEST(ServersMemory, IsWhereItIsNeeded) {
  const auto plan = CompileForThreads(Served(Job(), {.data = 4}, 2), 6);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto bytes = [&plan](int rank, const std::string& item) {
    int64_t sum = 0;
    for (const MemoryItem& of : plan->prediction().ranks(rank).memory()) {
      if (of.item() == item) sum += of.bytes();
    }
    return sum;
  };
  int64_t parameters = 0;
  for (const Unit& unit : plan->units()) {
    parameters += 4 * TrainedElements(unit);
  }
  EXPECT_EQ(bytes(0, "optimizer_moments"), 0);
  EXPECT_EQ(bytes(0, "pushed"), 0);
  EXPECT_GE(bytes(0, "parameters"), parameters);
  EXPECT_GT(bytes(0, "activations"), 0);
  EXPECT_EQ(bytes(4, "activations"), 0);
  EXPECT_GT(bytes(4, "pushed"), 0);
  EXPECT_LT(bytes(4, "pushed"), 2 * parameters) << "one unit at a time";
  const double half = 0.5 * static_cast<double>(parameters);
  EXPECT_NEAR(bytes(4, "parameters"), half, 0.05 * half);
  EXPECT_NEAR(bytes(4, "optimizer_moments"), 2 * half, 0.1 * half);
}

}  // namespace
}  // namespace troupe
