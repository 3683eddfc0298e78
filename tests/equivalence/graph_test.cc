// The promise, for graphs of units: a model with a skip from its first block to
// its last, and to its head, trains as on a single rank however it is cut. And
// a family that is written as a graph trains bit for bit as the built-in one.
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/graph.pb.h"
#include "proto/plan/edges.h"
#include "proto/plan/graph/graph_text.h"
#include "proto/plan/graph/print_graph.h"
#include "proto/plan/model.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/graphs/skip_graph.h"

namespace troupe {
namespace {

// Eight units.
JobSpec SkipJob(bool tied = true, double dropout = 0.1) {
  JobSpec job = WithFewSteps(SmallJob());
  *job.mutable_model() = SkipModel({.tied = tied});
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_dropout(dropout);
  job.mutable_optimizer()->set_lr(3e-3);
  return job;
}

void ExpectTrainsAlike(const JobSpec& job, const JobSpec& reference,
                       const Tolerance& tolerance = kRelativeError) {
  const ParallelismSpec& cut = job.parallelism();
  const int ranks = std::max(1, cut.pipeline()) * std::max(1, cut.data()) *
                    std::max(1, cut.tensor()) * std::max(1, cut.context());
  const TrainingRun run = Train(job, {.ranks = ranks});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ExpectSameTraining(run, OneRank(reference), tolerance);
}

std::vector<std::string> SynchronousSchedules() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    if (!pipeline.asynchronous) names.emplace_back(pipeline.name);
  }
  return names;
}

TEST(Graphs, ASkipTrains) {
  const TrainingRun& run = OneRank(SkipJob());
  ASSERT_TRUE(run.status().ok()) << run.status();
  EXPECT_LT(run.steps[0].back().loss(), run.steps[0][0].loss() - 0.05);
}

class SkipOnSchedule : public testing::TestWithParam<std::string> {};

TEST_P(SkipOnSchedule, TrainsTheSameModel) {
  for (const bool tied : {true, false}) {
    const JobSpec job = SkipJob(tied);
    for (const auto& [pipeline, data] :
         {std::pair(2, 1), std::pair(4, 1), std::pair(2, 2)}) {
      SCOPED_TRACE(absl::StrCat(pipeline, " x ", data));
      ExpectTrainsAlike(
          CutJob(job,
                 {.schedule = GetParam(), .pipeline = pipeline, .data = data}),
          job);
    }
  }
}

TEST_P(SkipOnSchedule, UnderZero3Recomputation) {
  const JobSpec job = SkipJob();
  JobSpec cut = CutJob(job, {.schedule = GetParam(), .pipeline = 2, .data = 2});
  cut.mutable_parallelism()->set_zero(3);
  cut.mutable_memory()->mutable_recompute()->set_mode("full");
  ExpectTrainsAlike(cut, job);
}

INSTANTIATE_TEST_SUITE_P(InProcess, SkipOnSchedule,
                         testing::ValuesIn(SynchronousSchedules()),
                         [](const auto& info) { return info.param; });

TEST(Graphs, ASkipWithinStagesThatAreCut) {
  JobSpec job = SkipJob();
  job.mutable_training()->set_sequence_length(18);
  JobSpec tensor = CutJob(job, {.schedule = "1f1b", .pipeline = 2});
  tensor.mutable_parallelism()->set_tensor(3);
  ExpectTrainsAlike(tensor, job, {1e-5, 1e-4});
  tensor.mutable_parallelism()->set_sequence_parallel(true);
  ExpectTrainsAlike(tensor, job, {1e-5, 1e-4});
  for (const char* const method : {"ring", "ulysses"}) {
    SCOPED_TRACE(method);
    JobSpec context = CutJob(job, {.schedule = "zb_h1", .pipeline = 2});
    context.mutable_parallelism()->set_context(3);
    context.mutable_parallelism()->set_context_method(method);
    ExpectTrainsAlike(context, job, {1e-5, 1e-4});
  }
}

// Units 0 to 7: the embedding, six blocks, the head; unit 1 is read by 2, 6
// and 7.
struct SkipStrategy {
  std::string name;
  std::string parallelism;  // in protobuf's text form
  int zero = 0;
  bool tied = false;
};
class SkipBesideStrategies : public testing::TestWithParam<SkipStrategy> {};

TEST_P(SkipBesideStrategies, TrainsTheSameModel) {
  const SkipStrategy& c = GetParam();
  JobSpec job = SkipJob(c.tied);
  job.mutable_training()->set_sequence_length(18);
  job.mutable_training()->set_micro_batch_size(3);
  job.mutable_training()->set_global_batch_size(12);
  for (const char* const recompute : {"none", "full"}) {
    SCOPED_TRACE(recompute);
    JobSpec cut = job;
    ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(
        c.parallelism, cut.mutable_parallelism()));
    if (c.zero > 0) cut.mutable_parallelism()->set_zero(c.zero);
    cut.mutable_memory()->mutable_recompute()->set_mode(recompute);
    const TrainingRun run = Train(cut, {.ranks = RanksNeeded(cut)});
    ASSERT_TRUE(run.status().ok()) << run.status();
    ExpectSameTraining(run, OneRank(job), {1e-5, 1e-4});
  }
}

const SkipStrategy kSkipStrategies[] = {
    {"only_the_reader", "tensor: 3 strategies { units: '6' batch: 3 }"},
    {"only_the_head", "tensor: 3 strategies { units: 'head' batch: 3 }"},
    {"all_but_the_maker", "batch: 3 strategies { units: '1' tensor: 3 }", 0,
     true},
    {"those_between",
     "tensor: 3 strategies { units: '2' units: '3' units: '4' batch: 3 }", 0,
     true},
    {"sequences",
     "batch: 3 strategies { units: '1' tensor: 3 sequence_parallel: true } "
     "strategies { units: '6' tensor: 3 }"},
    {"stages",
     "pipeline: 2 strategies { stage: 0 tensor: 3 } "
     "strategies { stage: 1 batch: 3 }"},
    {"stages_the_other_way",
     "pipeline: 2 pipeline_schedule: 'zb_h1' strategies { stage: 0 batch: 3 } "
     "strategies { stage: 1 tensor: 3 }"},
    {"interleaved",
     "pipeline: 2 pipeline_schedule: 'interleaved_1f1b' "
     "strategies { stage: 0 batch: 3 } strategies { stage: 3 tensor: 3 } "
     "strategies { units: '1' tensor: 3 } ",
     3},
    {"zero_3", "data: 2 tensor: 3 strategies { units: '6' batch: 3 }", 3},
};
INSTANTIATE_TEST_SUITE_P(InProcess, SkipBesideStrategies,
                         testing::ValuesIn(kSkipStrategies),
                         [](const auto& info) { return info.param.name; });

TEST(Graphs, ASkipWithMemoryBelowTheDevice) {
  const JobSpec job = SkipJob();
  JobSpec cut = CutJob(job, {.schedule = "interleaved_1f1b", .pipeline = 2});
  cut.mutable_memory()->set_activations("host");
  cut.mutable_memory()->set_optimizer("host");
  ExpectTrainsAlike(cut, job);
  cut.mutable_memory()->mutable_recompute()->set_mode("selective");
  ExpectTrainsAlike(cut, job);
}

TEST(Graphs, ASkipInBf16AndWithFrozenParts) {
  JobSpec job = SkipJob();
  job.mutable_training()->add_freeze("0.*");
  job.mutable_training()->add_freeze("w?e");
  ExpectTrainsAlike(CutJob(job, {.schedule = "zb_v", .pipeline = 2}), job);
  job.mutable_training()->clear_freeze();
  job.mutable_training()->set_precision("bf16");
  ExpectTrainsAlike(CutJob(job, {.schedule = "1f1b", .pipeline = 4}), job,
                    1e-2);
}

TEST(Graphs, ResumesFromAnyPlanToAnyOther) {
  JobSpec job = SkipJob();
  job.mutable_training()->set_sequence_length(18);
  job.mutable_training()->set_validate_every(0);
  std::vector<JobSpec> plans;
  plans.push_back(CutJob(job, {.schedule = "zb_v", .pipeline = 2}));
  plans.push_back(job);
  plans.push_back(CutJob(job, {.schedule = "1f1b", .pipeline = 4}));
  plans.push_back(job);
  plans.back().mutable_parallelism()->set_data(2);
  plans.back().mutable_parallelism()->set_zero(3);
  plans.push_back(job);
  plans.back().mutable_parallelism()->set_tensor(3);
  plans.push_back(CutJob(job, {.schedule = "gpipe", .pipeline = 2}));
  ExpectResumesThrough(plans, OneRank(job), {1e-5, 1e-4});
}

// From the first stage to the last, without those between.
TEST(Graphs, TransfersOfASkipGoStraightToItsReader) {
  const JobSpec job = CutJob(SkipJob(), {.schedule = "1f1b", .pipeline = 4});
  const auto plan = CompileForThreads(job, 4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Edges edges(*plan);
  ASSERT_EQ(edges.OutOf(1).size(), 3);  // block 1, the last one and the head
  const auto moved = [&](int place, Instruction::Kind kind, bool gradient) {
    int count = 0;
    for (const Instruction& instruction :
         plan->roles(place).programs(0).instructions()) {
      if (instruction.kind() == kind && instruction.unit() == 1 &&
          instruction.gradient() == gradient) {
        ++count;
      }
    }
    return count;
  };
  // Eight micro-batches. The last two readers are on one rank, which gets the
  // value once, and gives a gradient for each.
  ASSERT_EQ(plan->stages(0).unit_count(), 2);
  EXPECT_EQ(moved(0, Instruction::SEND, false), 16);
  EXPECT_EQ(moved(1, Instruction::RECV, false), 8);
  EXPECT_EQ(moved(2, Instruction::RECV, false), 0);
  EXPECT_EQ(moved(3, Instruction::RECV, false), 8);
  EXPECT_EQ(moved(3, Instruction::SEND, true), 16);
  EXPECT_EQ(moved(0, Instruction::RECV, true), 24);
}

TEST(Graphs, AsynchronousSchedulesAreRefused) {
  const JobSpec job =
      CutJob(SkipJob(), {.schedule = "pipedream", .pipeline = 2});
  const auto plan = CompileForThreads(job, 2);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.status().message().find("parallelism.pipeline_schedule"),
            std::string::npos)
      << plan.status();
}

// GPT-2 whose positions are a tensor of the batch, read by an embed of its own,
// is GPT-2.
JobSpec PositionsJob(const JobSpec& built_in) {
  ModelSpec model = built_in.model();
  EXPECT_TRUE(ResolveModel(model).ok());
  const GraphSizes sizes = {
      .vocab_size = model.vocab_size(),
      .max_position_embeddings = model.max_position_embeddings()};
  const std::string text =
      PrintGraph(
          ModelUnits(model,
                     {.sequences = 1, .sequence_length = 1, .dropout = 0.5})
              .value(),
          sizes)
          .value();
  ModelGraph graph = ParseGraphText("gpt2", text).value().graph;
  GraphBatch& positions = *graph.add_batch();
  positions.set_name("places");
  positions.set_source("positions");
  GraphUnit& embedding = *graph.mutable_unit(0);
  GraphUnit parted = embedding;
  parted.clear_op();
  for (const GraphOp& op : embedding.op()) {
    *parted.add_op() = op;
    if (!op.has_embed()) continue;
    GraphOp::Embed& words = *parted.mutable_op(0)->mutable_embed();
    words.clear_positions();
    words.set_y("words");
    GraphOp::Embed& places = *parted.add_op()->mutable_embed();
    places = op.embed();
    places.clear_positions();
    places.set_x("batch:places");
    places.set_y("position");
    places.set_tokens(op.embed().positions());
    GraphOp::Add& sum = *parted.add_op()->mutable_add();
    sum.set_x("words");
    sum.set_residual("position");
    sum.set_y(op.embed().y());
  }
  embedding = parted;
  JobSpec job = built_in;
  job.mutable_model()->Clear();
  job.mutable_model()->set_graph("positions.graph");
  google::protobuf::TextFormat::PrintToString(
      graph, job.mutable_model()->mutable_graph_text());
  return job;
}

TEST(Graphs, PositionsOfTheBatchAreThoseOfGpt2) {
  JobSpec built_in = WithFewSteps(PipelineJob({.dropout = 0.1}));
  built_in.mutable_training()->set_sequence_length(18);
  const JobSpec job = PositionsJob(built_in);
  std::vector<JobSpec> cuts = {
      job, CutJob(job, {.schedule = "zb_h1", .pipeline = 2, .data = 2})};
  for (const char* const method : {"ring", "ulysses"}) {
    JobSpec& context =
        cuts.emplace_back(CutJob(job, {.schedule = "1f1b", .pipeline = 2}));
    context.mutable_parallelism()->set_context(3);
    context.mutable_parallelism()->set_context_method(method);
  }
  JobSpec& tensor = cuts.emplace_back(job);
  tensor.mutable_parallelism()->set_tensor(3);
  tensor.mutable_parallelism()->set_sequence_parallel(true);
  for (const JobSpec& cut : cuts) {
    SCOPED_TRACE(cut.parallelism().ShortDebugString());
    ExpectTrainsAlike(cut, built_in, {1e-5, 1e-4});
  }
}

TEST(Graphs, Gpt2WrittenAsAGraphTrainsBitForBitAsTheBuiltIn) {
  JobSpec built_in = WithFewSteps(PipelineJob({.dropout = 0.1}));
  ModelSpec model = built_in.model();
  ASSERT_TRUE(ResolveModel(model).ok());
  const auto text = PrintGraph(
      ModelUnits(model, {.sequences = 1, .sequence_length = 1, .dropout = 0.5})
          .value(),
      {.vocab_size = model.vocab_size(),
       .max_position_embeddings = model.max_position_embeddings()});
  ASSERT_TRUE(text.ok()) << text.status();
  JobSpec graph = built_in;
  graph.mutable_model()->Clear();
  graph.mutable_model()->set_graph("gpt2.graph");
  graph.mutable_model()->set_graph_text(*text);
  const PipelineCut cut = {.schedule = "1f1b", .pipeline = 2, .data = 2};
  const TrainingRun a = Train(CutJob(built_in, cut), {.ranks = 4});
  const TrainingRun b = Train(CutJob(graph, cut), {.ranks = 4});
  ASSERT_TRUE(a.status().ok() && b.status().ok()) << b.status();
  ASSERT_EQ(a.steps[0].size(), b.steps[0].size());
  for (size_t s = 0; s < a.steps[0].size(); ++s) {
    EXPECT_EQ(a.steps[0][s].loss(), b.steps[0][s].loss());
    EXPECT_EQ(a.steps[0][s].grad_norm(), b.steps[0][s].grad_norm());
  }
}

}  // namespace
}  // namespace troupe
