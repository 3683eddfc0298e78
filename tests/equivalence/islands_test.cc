// The promise, for islands: each trains by itself, and what they exchange gives
// the weights of a plain loop (island_loop.h), whichever way an island is cut;
// an exchange after each step with a plain mean is averaging after each step;
// checkpoints go on to the bit, and any plan goes on from them.
#include "proto/plan/islands.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/trained.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/tensor_reader.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/island_loop.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

std::string NewDirectory(const std::string& name) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  return directory;
}

// Eight micro-batches a step; tables are tied in GPT-2.
JobSpec Job(const std::string& architecture = "gpt2") {
  JobSpec job = WithFewSteps(TensorJob({.architecture = architecture,
                                        .tied = architecture == "gpt2",
                                        .dropout = 0.1}));
  job.mutable_training()->set_validate_every(0);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_global_batch_size(8);
  return job;
}

JobSpec WithIslands(const JobSpec& job, const JobCut& cut, int islands,
                    int every = 3) {
  JobSpec on_islands = CutJob(job, cut);
  on_islands.mutable_parallelism()->set_islands(islands);
  on_islands.mutable_islands()->set_every(every);
  return on_islands;
}

TrainingRun TrainOn(const JobSpec& job,
                    const std::string& backend = "in_process") {
  return Train(job, {.ranks = RanksNeeded(job), .backend = backend});
}

// Every rank has the steps of its island in the loop.
void ExpectSameAsLoop(const TrainingRun& run, const Tolerance& tolerance) {
  ASSERT_TRUE(run.status().ok()) << run.status();
  const auto loop = TrainIslands(run.plan.job());
  for (size_t rank = 0; rank < run.steps.size(); ++rank) {
    const int island = IslandOf(run.plan.mesh(), static_cast<int>(rank));
    ASSERT_EQ(run.steps[rank].size(), loop[island].size());
    for (size_t i = 0; i < loop[island].size(); ++i) {
      const IslandStep& want = loop[island][i];
      const StepRecord& got = run.steps[rank][i];
      EXPECT_LE(std::abs(got.loss() - want.loss), tolerance.losses * want.loss)
          << "rank " << rank << ", step " << i + 1 << ": loss " << got.loss()
          << ", not " << want.loss;
      EXPECT_LE(std::abs(got.grad_norm() - want.gradient_norm),
                tolerance.norms * want.gradient_norm)
          << "rank " << rank << ", step " << i + 1;
    }
  }
  EXPECT_EQ(run.bytes_left, 0u);
}

struct IslandCase {
  const char* name;
  int islands = 2;
  JobCut cut;
  std::string architecture = "gpt2";
  std::string backend = "in_process";
  std::string compress = "none";
  int fragments = 1;
  double momentum = 0.9;
  int overlap = 0;
};

class Islands : public testing::TestWithParam<IslandCase> {};

TEST_P(Islands, TrainAsThePlainLoop) {
  const IslandCase& of = GetParam();
  JobSpec job = WithIslands(Job(of.architecture), of.cut, of.islands);
  IslandsSpec& islands = *job.mutable_islands();
  islands.set_compress(of.compress);
  islands.set_fragments(of.fragments);
  islands.set_overlap(of.overlap);
  islands.mutable_outer()->set_momentum(of.momentum);
  EXPECT_EQ(RanksNeeded(job), of.islands * of.cut.ranks());
  // What is rounded may be rounded the other way.
  const Tolerance tolerance = of.compress == "none"   ? kTolerance
                              : of.compress == "bf16" ? Tolerance(1e-4, 1e-3)
                                                      : Tolerance(2e-3, 2e-2);
  ExpectSameAsLoop(TrainOn(job, of.backend), tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Cuts, Islands,
    testing::Values(
        IslandCase{"two", 2, {}},
        IslandCase{"four", 4, {}, "llama", "shared_memory"},
        IslandCase{"no_momentum", 2, {}, "llama", "gloo", "none", 1, 0},
        IslandCase{"of_replicas", 2, {.data = 2}, "gpt2", "shared_memory"},
        IslandCase{"of_zero_1", 2, {.data = 2, .zero = 1}},
        IslandCase{"of_zero_2", 2, {.data = 2, .zero = 2}, "llama"},
        IslandCase{"of_zero_3", 2, {.data = 4, .zero = 3}, "gpt2", "gloo"},
        IslandCase{"of_pipelines", 2, {.pipeline = 2, .data = 2}},
        IslandCase{"of_interleaved",
                   2,
                   {.schedule = "interleaved_1f1b", .pipeline = 2}},
        IslandCase{"of_chimera", 2, {.schedule = "chimera", .pipeline = 2}},
        IslandCase{"of_zb_h2", 2, {.schedule = "zb_h2", .pipeline = 2}},
        IslandCase{"of_tensor", 2, {.tensor = 2, .sequence = true}, "llama"},
        IslandCase{"of_context", 2, {.context = 2}, "llama"},
        IslandCase{"fragments", 2, {}, "gpt2", "in_process", "none", 3},
        IslandCase{"fragments_of_pipelines",
                   2,
                   {.pipeline = 2},
                   "llama",
                   "in_process",
                   "none",
                   2},
        IslandCase{"overlap", 2, {}, "gpt2", "in_process", "none", 1, 0.9, 1},
        IslandCase{"overlap_in_fragments",
                   2,
                   {.pipeline = 2, .data = 2, .zero = 1},
                   "gpt2",
                   "shared_memory",
                   "none",
                   3,
                   0.9,
                   1},
        IslandCase{"overlap_bf16",
                   2,
                   {.data = 2, .zero = 3},
                   "llama",
                   "in_process",
                   "bf16",
                   2,
                   0.9,
                   1},
        IslandCase{"bf16", 4, {}, "gpt2", "in_process", "bf16"},
        IslandCase{"int4", 2, {}, "llama", "in_process", "int4"},
        IslandCase{"bf16_of_zero",
                   2,
                   {.data = 2, .zero = 1},
                   "llama",
                   "in_process",
                   "bf16",
                   2}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(IslandsThatAverage, AreDataParallelIfTheyDoAfterEachStep) {
  JobSpec job = Job();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->clear_betas();
  job.mutable_optimizer()->clear_eps();
  job.mutable_optimizer()->set_lr(0.05);
  job.mutable_training()->set_gradient_clipping(0);
  const TrainingRun& whole = OneRank(job);
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  JobSpec averaged = WithIslands(job, {}, 4, /*every=*/1);
  averaged.mutable_islands()->mutable_outer()->set_lr(1);
  averaged.mutable_islands()->mutable_outer()->set_momentum(0);
  const TrainingRun run = TrainOn(averaged);
  ASSERT_TRUE(run.status().ok()) << run.status();
  for (size_t i = 0; i < whole.steps[0].size(); ++i) {
    double loss = 0;
    for (const auto& of_rank : run.steps) loss += of_rank[i].loss() / 4;
    const double want = whole.steps[0][i].loss();
    EXPECT_LE(std::abs(loss - want), 1e-5 * want) << "step " << i + 1;
  }
}

std::vector<float> ReadTensor(const std::string& checkpoint,
                              const std::string& name) {
  auto reader = TensorReader::Open(checkpoint);
  CHECK_OK(reader.status());
  const ManifestTensor* const tensor = (*reader)->Find(name);
  CHECK(tensor != nullptr) << name;
  int64_t elements = 1;
  for (const int64_t dim : tensor->shape) elements *= dim;
  std::vector<float> values(elements);
  CHECK_OK((*reader)->ReadRange(
      name, StoredDType::kF32, {.begin = 0, .count = elements}, values.data()));
  return values;
}

// After the last step all islands have the weights of the last exchange.
TEST(IslandsThatEnd, HaveExchangedAllTheyLearned) {
  JobSpec job = WithIslands(Job("llama"), {.data = 2, .zero = 1}, 2);
  job.mutable_islands()->set_fragments(2);
  job.mutable_checkpoint()->set_directory(NewDirectory("islands_end"));
  const TrainingRun run = TrainOn(job);
  ASSERT_TRUE(run.status().ok()) << run.status();
  const std::string last =
      CheckpointPath(job.checkpoint().directory(), kFewSteps);
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  const std::vector<float> weights = ReadTensor(last, name);
  EXPECT_EQ(weights, ReadTensor(last, TensorOfIsland(1, name)));
  EXPECT_EQ(weights, ReadTensor(last, "optimizer.outer_weights." + name));
  // What is an island's own is not the same.
  const std::string moment = "optimizer.exp_avg." + name;
  EXPECT_NE(ReadTensor(last, moment),
            ReadTensor(last, TensorOfIsland(1, moment)));
}

// In the middle of a round, with weights and states of each island's own.
TEST(IslandsThatResume, GoOnToTheBit) {
  for (const bool pipelines : {false, true}) {
    const JobCut cut = {.pipeline = pipelines ? 2 : 1, .data = 2, .zero = 1};
    JobSpec job = WithIslands(Job(), cut, 2);
    job.mutable_islands()->set_fragments(2);
    job.mutable_islands()->set_overlap(pipelines ? 1 : 0);
    job.mutable_optimizer()->mutable_ema();
    const TrainingRun whole = TrainOn(job);
    ASSERT_TRUE(whole.status().ok()) << whole.status();
    job.mutable_checkpoint()->set_directory(NewDirectory("islands_resume"));
    JobSpec first = job;
    first.mutable_training()->set_steps(kFewSteps);
    first.mutable_checkpoint()->set_every(5);
    first.mutable_checkpoint()->set_background(pipelines);
    ASSERT_TRUE(TrainOn(first).status().ok());
    const TrainingRun rest =
        Train(job, {.ranks = RanksNeeded(job),
                    .resume = CheckpointPath(job.checkpoint().directory(), 5)});
    ASSERT_TRUE(rest.status().ok()) << rest.status();
    for (size_t rank = 0; rank < rest.steps.size(); ++rank) {
      ASSERT_EQ(rest.steps[rank].size(), 3u);
      for (const StepRecord& step : rest.steps[rank]) {
        EXPECT_EQ(step.loss(), whole.steps[rank][step.step() - 1].loss())
            << "rank " << rank << ", step " << step.step();
      }
    }
  }
}

// Any plan goes on from what islands saved, with the first one's weights and
// states, and islands go on from any plan's.
TEST(IslandsThatResume, FromAndToOtherPlans) {
  JobSpec job = Job();
  job.mutable_training()->set_steps(12);
  job.mutable_checkpoint()->set_directory(NewDirectory("islands_plans"));
  const std::vector<JobSpec> plans = {
      CutJob(job, {.data = 2}), WithIslands(job, {.data = 2, .zero = 1}, 2),
      WithIslands(job, {}, 4), CutJob(job, {.pipeline = 2})};
  int64_t done = 0;
  double first = 0;
  double last = 0;
  for (const JobSpec& plan : plans) {
    SCOPED_TRACE(absl::StrCat("from step ", done));
    done += 3;
    JobSpec part = plan;
    part.mutable_training()->set_stop_after(done);
    const TrainingRun run = Train(part, {.ranks = RanksNeeded(part),
                                         .resume = done == 3 ? "" : "latest"});
    ASSERT_TRUE(run.status().ok()) << run.status();
    if (done == 3) first = run.steps[0].front().loss();
    last = run.steps[0].back().loss();
    EXPECT_LT(last, first);
  }
  EXPECT_LT(last, first - 0.1);
}

// A rank that wants to stop is heard when islands agree, and all stop then.
TEST(IslandsThatStop, DoSoTogetherWhenTheyMeet) {
  JobSpec job = WithIslands(Job(), {.data = 2}, 2, /*every=*/4);
  job.mutable_training()->set_steps(12);
  const TrainingRun run =
      Train(job, {.ranks = RanksNeeded(job),
                  .on_step = [](int rank, const StepRecord& record,
                                const std::vector<TrainLoop*>& loops) {
                    if (rank == 3 && record.step() == 5) {
                      loops[rank]->RequestStop();
                    }
                  }});
  for (const absl::Status& status : run.statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  }
  for (const auto& steps : run.steps) EXPECT_EQ(steps.back().step(), 8);
}

// Between exchanges nothing goes to other islands; in one, what the plan says.
TEST(IslandsBytes, AreThoseOfTheFormulaAndOfThePrediction) {
  for (const std::string compress : {"none", "bf16", "int4"}) {
    JobSpec job = WithIslands(Job("llama"), {}, 2);
    job.mutable_islands()->set_compress(compress);
    const TrainingRun run = TrainOn(job);
    ASSERT_TRUE(run.status().ok()) << run.status();
    int64_t elements = 0;
    for (const Unit& unit : run.plan.units()) elements += TrainedElements(unit);
    const auto sent = [&run](int step) {
      return static_cast<double>(run.sent_bytes[0][step - 1] -
                                 run.sent_bytes[0][step - 2]);
    };
    EXPECT_EQ(sent(4), 0);
    EXPECT_EQ(sent(5), 0);
    // 2 (n - 1) / n of all, for two islands.
    const double each = compress == "none"   ? 4
                        : compress == "bf16" ? 2
                                             : 0.5 + 4.0 / 64;
    const double formula = each * static_cast<double>(elements);
    EXPECT_GE(sent(6), formula);
    // Pieces of whole blocks, and two flags.
    EXPECT_LE(sent(6), 1.1 * formula);
    const IslandsPrediction& predicted = run.plan.prediction().islands();
    EXPECT_EQ(predicted.every(), 3);
    EXPECT_NEAR(static_cast<double>(predicted.bytes_sent()), sent(6), 64);
    EXPECT_EQ(predicted.data_parallel_bytes(), 3 * 4 * elements);
  }
}

// The weights of the last exchange and the momentum lie with the states of the
// optimizer, in slices where those do.
TEST(IslandsMemory, IsThatOfTwoMoreStates) {
  const auto moments = [](const JobSpec& job) {
    const auto plan = CompileForThreads(job, RanksNeeded(job));
    CHECK_OK(plan.status());
    int64_t bytes = 0;
    for (const MemoryItem& of : plan->prediction().ranks(0).memory()) {
      if (of.item() == "optimizer_moments") bytes += of.bytes();
    }
    return bytes;
  };
  const JobSpec job = Job("llama");
  EXPECT_EQ(moments(WithIslands(job, {}, 2)), 2 * moments(job));
  const int64_t sliced = moments(CutJob(job, {.data = 2, .zero = 1}));
  EXPECT_EQ(moments(WithIslands(job, {.data = 2, .zero = 1}, 2)), 2 * sliced);
}

}  // namespace
}  // namespace troupe
