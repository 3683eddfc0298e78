// A head that computes its loss for some tokens at a time trains the model that
// it trains with all at once, however the job is cut, and needs the memory of
// the logits of a chunk only.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/reference_runs.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

// Sums of rows are taken in another order: of gradients, which training then
// makes steps of.
const Tolerance kSums(1e-6, 1e-5);

JobSpec WithChunks(JobSpec job, int64_t tokens) {
  job.mutable_memory()->set_loss_chunk_tokens(tokens);
  return job;
}

// The so-cut job against itself without chunks: all else is the same, bit for
// bit.
void ExpectTheSame(const JobSpec& job, int64_t tokens,
                   const Tolerance& tolerance = kSums) {
  const TrainOptions options = {.ranks = RanksNeeded(job)};
  const TrainingRun whole = Train(job, options);
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  ExpectSameTraining(Train(WithChunks(job, tokens), options), whole, tolerance);
}

int Chunks(const Plan& plan) {
  int chunks = 0;
  for (const Op& op : plan.tables(plan.units().rbegin()->table()).ops()) {
    chunks += op.kind() == Op::CROSS_ENTROPY;
  }
  return chunks;
}

// Sequences of 24 and two of them: both at once, one, pieces that divide one
// and pieces that do not, and single tokens.
TEST(LossChunks, OfAnySizeTrainTheSame) {
  for (const bool tied : {true, false}) {
    JobSpec job = WithFewSteps(TensorJob({.tied = tied, .dropout = 0.1}));
    job.mutable_training()->set_micro_batch_size(4);
    const TrainingRun& whole = OneRank(job);
    for (const auto& [tokens, chunks] : std::vector<std::pair<int, int>>{
             {96, 1}, {95, 2}, {48, 2}, {24, 4}, {12, 8}, {7, 16}, {1, 96}}) {
      SCOPED_TRACE(absl::StrCat(tokens, " tokens"));
      const TrainingRun run = Train(WithChunks(job, tokens), {});
      EXPECT_EQ(Chunks(run.plan), chunks);
      ExpectSameTraining(run, whole, kSums);
    }
  }
}

std::vector<std::string> Schedules() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    names.emplace_back(pipeline.name);
  }
  return names;
}

JobSpec ScheduledJob(const std::string& schedule) {
  JobSpec job = WithFewSteps(
      CutJob(PipelineJob({.dropout = 0.1}), PipelineCut{.schedule = schedule}));
  const int stages = 2 * FindPipeline(schedule)->default_virtual_stages;
  for (int s = 0; s < stages; ++s) {
    job.mutable_parallelism()->add_stages(8 / stages);
  }
  return job;
}

// Those that go forward with the head in an earlier step than back are refused.
class LossChunksUnderSchedule : public testing::TestWithParam<std::string> {};
TEST_P(LossChunksUnderSchedule, TrainTheSame) {
  const JobSpec job = ScheduledJob(GetParam());
  const auto plan = CompileForThreads(WithChunks(job, 5), 2);
  if (!plan.ok()) {
    EXPECT_THAT(
        plan.status().message(),
        testing::AllOf(testing::HasSubstr("memory.loss_chunk_tokens: "),
                       testing::HasSubstr("goes forward in the step before")));
    EXPECT_TRUE(FindPipeline(GetParam())->overlaps_steps ||
                FindPipeline(GetParam())->asynchronous);
    return;
  }
  ExpectTheSame(job, 5);
}
INSTANTIATE_TEST_SUITE_P(All, LossChunksUnderSchedule,
                         testing::ValuesIn(Schedules()),
                         [](const auto& info) { return info.param; });

struct CutCase {
  const char* architecture = "gpt2";
  JobCut cut;
  bool tied = true;
  bool refused = false;  // ranks exchange the logits
};

// The vocabulary whole and cut, samples and positions whole and cut, weights in
// slices.
TEST(LossChunks, OfEveryCutTrainTheSame) {
  const std::vector<CutCase> cases = {
      {"gpt2", {.tensor = 2}},
      {"llama", {.tensor = 4}, false},
      {"gpt2", {.tensor = 3, .sequence = true}},
      {"gpt2", {.tensor = 2, .sequence = true}, false},
      {"gpt2", {.tensor = 4, .tensor_method = "2d"}, true, /*refused=*/true},
      {"llama",
       {.tensor = 8, .tensor_method = "2.5d"},
       false,
       /*refused=*/true},
      {"gpt2", {.tensor = 8, .tensor_method = "3d"}, true, /*refused=*/true},
      {"llama", {.context = 2}},
      {"gpt2", {.context = 2, .context_method = "ring"}},
      {"llama", {.tensor = 2, .context = 2, .context_method = "ring"}, false},
      {"gpt2", {.data = 2, .zero = 1}},
      {"gpt2", {.data = 2, .zero = 2}, false},
      {"llama", {.data = 2, .zero = 3}},
      {"llama", {.data = 2, .zero = 3, .reshard = false}, false},
      {"llama", {.tensor = 2, .pipeline = 2, .data = 2, .zero = 1}},
      {"gpt2", {.tensor = 2, .schedule = "gpipe", .pipeline = 2}},
      {"gpt2", {.tensor = 2, .schedule = "zb_h1", .pipeline = 2}},
      {"mixtral", {.data = 2, .expert = 2}},
  };
  for (const CutCase& of : cases) {
    SCOPED_TRACE(absl::StrCat(
        of.architecture, " ",
        CutJob(JobSpec(), of.cut).parallelism().ShortDebugString()));
    const JobSpec job =
        CutJob(WithFewSteps(TensorJob({.architecture = of.architecture,
                                       .tied = of.tied,
                                       .micro_batch = 4})),
               of.cut);
    const auto plan = CompileForThreads(WithChunks(job, 5), RanksNeeded(job));
    EXPECT_EQ(!plan.ok(), of.refused) << plan.status();
    if (!plan.ok()) {
      EXPECT_THAT(std::string(plan.status().message()),
                  testing::StartsWith("memory.loss_chunk_tokens: "));
      continue;
    }
    ExpectTheSame(job, 5);
  }
}

// What is rounded on the way is rounded alike: gradients are summed in f32.
TEST(LossChunks, OfNarrowNumbersTrainTheSame) {
  for (const char* const precision : {"bf16", "fp16"}) {
    for (const int tensor : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(precision, " on ", tensor));
      JobSpec job = WithFewSteps(TensorJob({.tied = tensor == 1}));
      job.mutable_training()->set_precision(precision);
      job = CutJob(job, JobCut{.tensor = tensor});
      // A weight near the middle between two numbers goes to either.
      ExpectTheSame(job, 7, Tolerance(2e-3, 2e-2));
    }
  }
}

TEST(LossChunks, GoWithWhatElseMayBeAsked) {
  const JobSpec job =
      WithFewSteps(TensorJob({.architecture = "llama", .dropout = 0.1}));
  JobSpec again = job;
  again.mutable_memory()->mutable_recompute()->set_mode("full");
  ExpectTheSame(again, 5);
  JobSpec gpipe = CutJob(job, JobCut{.schedule = "gpipe", .pipeline = 2});
  gpipe.mutable_memory()->mutable_recompute()->set_mode("selective");
  ExpectTheSame(gpipe, 5);
  JobSpec below = job;
  below.mutable_memory()->set_optimizer("host");
  below.mutable_memory()->set_parameters("host");
  below.mutable_memory()->set_gradients("host");
  below.mutable_memory()->set_activations("host");
  ExpectTheSame(below, 5);
  ExpectTheSame(IsolatingDocuments(job), 5);
  JobSpec frozen = job;
  frozen.mutable_training()->add_freeze("model.embed_tokens.weight");
  ExpectTheSame(frozen, 5);
  JobSpec adapters = job;
  adapters.mutable_training()->mutable_lora()->set_rank(3);
  ExpectTheSame(adapters, 5);
  JobSpec deep = WithFewSteps(TensorJob({.architecture = "deepseek_v3"}));
  ExpectTheSame(deep, 5);
}

// A job goes on from a checkpoint of one without chunks, and the other way
// around, on other ranks.
TEST(LossChunks, ResumeAcross) {
  const JobSpec job = WithFewSteps(TensorJob({}));
  ExpectResumesThrough(
      {WithChunks(job, 7), job,
       WithChunks(CutJob(job, JobCut{.tensor = 2}), 24),
       WithChunks(CutJob(job, JobCut{.data = 2, .zero = 3}), 5), job,
       WithChunks(job, 1)},
      OneRank(job), {1e-5, 1e-4});
}

int64_t Activations(const Plan& plan) {
  int64_t bytes = 0;
  for (const MemoryItem& item : MemoryItems(plan.roles(0))) {
    if (item.item() == "activations") bytes += item.bytes();
  }
  return bytes;
}

// A vocabulary that outweighs all else of the model.
TEST(LossChunks, NeedTheLogitsOfOneChunk) {
  JobSpec job = TensorJob({.micro_batch = 4});
  job.mutable_model()->set_vocab_size(4000);
  job.mutable_training()->set_steps(1);
  const int64_t logits = 4 * 24 * 4000 * 4;
  const auto whole = CompileForThreads(job, 1);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int chunks : {2, 4, 8}) {
    const auto plan = CompileForThreads(WithChunks(job, 4 * 24 / chunks), 1);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Unit& head = *plan->units().rbegin();
    EXPECT_EQ(head.segment_bytes(), logits / chunks);
    // The gradient of the norm's output lives from chunk to chunk.
    const int64_t gradient = 4 * 24 * 48 * 4;
    EXPECT_LE(Activations(*plan),
              Activations(*whole) - logits + logits / chunks + gradient);
  }
}

}  // namespace
}  // namespace troupe
