// The worker reaches operands through its device only, and orders what its
// lanes enqueue: on a device whose memory the host cannot read and whose queues
// run late (split_memory_device.h), every number is that of the plain CPU, bit
// for bit. What holds there holds on a GPU but for the arithmetic of its
// kernels.
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/copies.h"
#include "proto/plan/find_program.h"
#include "proto/plan/optimizer_states.h"
#include "storage/checkpoint/tensor_reader.h"
#include "storage/tier/allocator.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"
#include "tests/equivalence/text_plan_of.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/collective/enqueued/late_transport.h"
#include "worker/engine/text_generation.h"
#include "worker/rank/device_allocator.h"

namespace troupe {
namespace {

std::unique_ptr<Device> NewSplitDevice() {
  return std::make_unique<SplitMemoryDevice>(CpuDeviceOptions{.threads = 1});
}

// But for what time it took.
void ExpectSameSteps(const TrainingRun& run, const TrainingRun& reference) {
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  ASSERT_EQ(run.steps.size(), reference.steps.size());
  for (size_t rank = 0; rank < run.steps.size(); ++rank) {
    ASSERT_EQ(run.steps[rank].size(), reference.steps[rank].size());
    for (size_t i = 0; i < run.steps[rank].size(); ++i) {
      const StepRecord& got = run.steps[rank][i];
      const StepRecord& want = reference.steps[rank][i];
      EXPECT_EQ(got.loss(), want.loss()) << "step " << want.step();
      EXPECT_EQ(got.grad_norm(), want.grad_norm()) << "step " << want.step();
      EXPECT_EQ(got.validation_loss(), want.validation_loss());
      EXPECT_EQ(got.samples_consumed(), want.samples_consumed());
    }
  }
  // What is kept for a recovery, if anything is.
  EXPECT_EQ(run.bytes_left, reference.bytes_left);
}

// Architecture, precision, ranks, backend.
using Cut = std::tuple<std::string, std::string, int, std::string>;

class DeviceMemory : public testing::TestWithParam<Cut> {};

TEST_P(DeviceMemory, TrainsAsHostMemoryDoes) {
  const auto& [architecture, precision, ranks, backend] = GetParam();
  JobSpec job = architecture == "gpt2" ? SmallJob() : SmallLlamaJob();
  job.mutable_training()->set_precision(precision);
  job.mutable_training()->set_dropout(0.1);
  job.mutable_training()->set_micro_batch_size(2);
  job.mutable_parallelism()->set_data(ranks);
  job.mutable_parallelism()->set_bucket_megabytes(0.02);
  const TrainingRun reference =
      Train(job, {.ranks = ranks, .backend = backend});
  const TrainingRun run = Train(job, {.ranks = ranks,
                                      .backend = backend,
                                      .trace_every = 0,
                                      .new_device = NewSplitDevice});
  ExpectSameSteps(run, reference);
  EXPECT_LT(run.steps[0].back().loss(), run.steps[0][0].loss() - 0.5);
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceMemory,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::Values("f32", "bf16"),
                                          testing::Values(1, 2),
                                          testing::Values("in_process")));
INSTANTIATE_TEST_SUITE_P(
    Backends, DeviceMemory,
    testing::Combine(testing::Values("gpt2"), testing::Values("f32"),
                     testing::Values(2, 4),
                     testing::Values("shared_memory", "gloo")));

class DevicePipeline : public testing::TestWithParam<PipelineCut> {};

TEST_P(DevicePipeline, TrainsAsHostMemoryDoes) {
  JobSpec job = CutJob(PipelineJob({.dropout = 0.1}), GetParam());
  job.mutable_training()->set_gradient_clipping(0);
  const int ranks = GetParam().ranks();
  ExpectSameSteps(
      Train(job,
            {.ranks = ranks, .trace_every = 0, .new_device = NewSplitDevice}),
      Train(job, {.ranks = ranks}));
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, DevicePipeline,
    testing::Values(PipelineCut{.schedule = "1f1b", .data = 2},
                    PipelineCut{.schedule = "chimera", .pipeline = 4},
                    PipelineCut{.schedule = "zb_v", .pipeline = 2},
                    PipelineCut{.schedule = "pipedream", .pipeline = 4}),
    [](const auto& info) { return info.param.schedule; });

// What ranks exchange is enqueued, as on NCCL (late_transport.h): nobody waits
// for its end but by fences.
class Enqueued : public testing::TestWithParam<JobCut> {};

TEST_P(Enqueued, ExchangesTrainAsThoseThatEndWithTheirCalls) {
  JobSpec job = CutJob(TensorJob({.dropout = 0.1}), GetParam());
  job.mutable_training()->set_validate_every(7);
  job.mutable_parallelism()->set_bucket_megabytes(0.02);
  const int ranks = GetParam().ranks();
  const TrainingRun reference = Train(job, {.ranks = ranks});
  const TrainingRun run = Train(job, {.ranks = ranks,
                                      .create = CreateLate,
                                      .trace_every = 0,
                                      .new_device = NewSplitDevice});
  ExpectSameSteps(run, reference);
  // A reduce and a broadcast count as each backend does them.
  if (GetParam().tensor_method == "2d") return;
  EXPECT_EQ(run.sent_bytes.back().back(), reference.sent_bytes.back().back());
}

INSTANTIATE_TEST_SUITE_P(
    Cuts, Enqueued,
    testing::Values(JobCut{.tensor = 2, .sequence = true, .data = 2},
                    JobCut{.tensor = 2, .pipeline = 2},
                    JobCut{.schedule = "zb_h1", .pipeline = 4},
                    JobCut{.data = 4, .zero = 3},
                    JobCut{.tensor = 4, .tensor_method = "2d"},
                    JobCut{.data = 2, .context = 2},
                    JobCut{.context = 3, .context_method = "ring"}));

// Steps overlap there, and ranks sum the scalars of a step in different runs.
TEST(Enqueued, AsynchronousPipelinesTrainTheSame) {
  JobSpec job = CutJob(PipelineJob({.dropout = 0.1}),
                       PipelineCut{.schedule = "pipedream", .pipeline = 4});
  job.mutable_training()->set_gradient_clipping(0);
  ExpectSameSteps(Train(job, {.ranks = 4,
                              .create = CreateLate,
                              .trace_every = 0,
                              .new_device = NewSplitDevice}),
                  Train(job, {.ranks = 4}));
}

// The others hear of it from what they exchange, and say which it was.
TEST(Enqueued, ARankThatEndsInTheMiddleEndsAll) {
  const JobSpec job =
      CutJob(TensorJob({}), {.tensor = 2, .sequence = true, .data = 2});
  const TrainingRun run =
      Train(job, {.ranks = 4,
                  .create = CreateLate,
                  .trace_every = 0,
                  .new_device = NewSplitDevice,
                  .on_step = [](int rank, const StepRecord& record,
                                const std::vector<TrainLoop*>& loops) {
                    if (rank != 2 || record.step() != 3) return;
                    loops[2]->Abort(absl::CancelledError("enough"));
                  }});
  EXPECT_EQ(run.statuses[2], absl::CancelledError("enough"));
  for (const int rank : {0, 1, 3}) {
    EXPECT_FALSE(run.statuses[rank].ok());
    EXPECT_NE(run.statuses[rank].message().find("group "),
              absl::string_view::npos)
        << run.statuses[rank];
  }
  EXPECT_EQ(run.bytes_left, 0u);
}

TEST(DeviceMemory, SgdAndNoClippingTrainTheSame) {
  JobSpec job = SmallJob();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_momentum(0.9);
  job.mutable_optimizer()->set_lr(0.1);
  job.mutable_training()->set_gradient_clipping(0);
  ExpectSameSteps(Train(job, {.trace_every = 0, .new_device = NewSplitDevice}),
                  Train(job, {}));
}

// What the device did is in the timeline, in an order that its fences forced.
TEST(DeviceMemory, SpansAreTheDevices) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(2);
  const TrainingRun run = Train(job, {.new_device = NewSplitDevice});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const Program& program = run.plan.roles(0).programs(0);
  for (const RankTimeline& timeline : run.timelines[0]) {
    ASSERT_EQ(timeline.spans_size(), program.instructions_size());
    std::vector<const Span*> spans(program.instructions_size());
    for (const Span& span : timeline.spans()) {
      spans.at(span.instruction()) = &span;
    }
    for (int i = 0; i < program.instructions_size(); ++i) {
      ASSERT_NE(spans[i], nullptr);
      EXPECT_LE(spans[i]->start_ns(), spans[i]->end_ns());
      for (const int earlier : program.instructions(i).after()) {
        // Both clocks are this machine's.
        EXPECT_LE(spans[earlier]->end_ns(), spans[i]->end_ns());
      }
    }
  }
}

JobSpec CheckpointedJob(const std::string& name, bool background) {
  JobSpec job = SmallJob();
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(10);
  job.mutable_checkpoint()->set_background(background);
  return job;
}

void ExpectSameTensors(const std::string& a, const std::string& b) {
  const auto first = TensorReader::Open(a);
  const auto second = TensorReader::Open(b);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GT((*first)->manifest().tensors.size(), 20u);
  for (const ManifestTensor& tensor : (*first)->manifest().tensors) {
    std::vector<float> want(ElementCount(tensor.shape));
    std::vector<float> got(want.size());
    const FlatRange all = {.count = static_cast<int64_t>(want.size())};
    ASSERT_TRUE(
        (*first)
            ->ReadRange(tensor.name, StoredDType::kF32, all, want.data())
            .ok());
    ASSERT_TRUE((*second)
                    ->ReadRange(tensor.name, StoredDType::kF32, all, got.data())
                    .ok());
    EXPECT_EQ(std::memcmp(want.data(), got.data(), 4 * want.size()), 0)
        << tensor.name;
  }
}

// A rank's state in a copy, without the gaps between units.
std::string StateIn(const char* copy, const Plan& plan, int rank) {
  const Role& role = plan.roles(0);
  std::string state;
  for (const Placement& placement : role.placements()) {
    const Range rests = AtRestWith(plan, placement, /*part=*/0, rank).rests;
    state.append(
        copy + CopyOffsetOfUnit(plan, role, placement.unit()),
        sizeof(float) * (rests.size() +
                         StateElements(plan.job().optimizer(),
                                       plan.units(placement.unit()), rests)));
  }
  return state;
}

// Copies for a recovery lie in the host's memory: they are made of what is on
// the device, and go from host to host without it.
TEST(DeviceMemory, CopiesForARecoveryAreTheSame) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  job.mutable_parallelism()->set_zero(1);
  job.mutable_recovery()->set_every("1");
  // By rank, each of the two copies of its own state and of its peer's.
  using Copies = std::array<std::vector<std::string>, 2>;
  const auto train = [&job](Copies& copies, TrainOptions options) {
    options.ranks = 2;
    options.on_ended = [&copies](int rank, const KeptMemory& kept,
                                 const Plan& plan) {
      ASSERT_TRUE(MirrorsOf(*FindProgram(plan.roles(0), Program::KEEP)));
      for (const char* own : kept.own) {
        copies[rank].push_back(StateIn(own, plan, rank));
      }
      for (const char* of_peer : kept.of_peer) {
        copies[rank].push_back(StateIn(of_peer, plan, 1 - rank));
      }
    };
    return Train(job, options);
  };
  Copies of_host, of_device;
  const TrainingRun reference = train(of_host, {});
  const TrainingRun run =
      train(of_device, {.trace_every = 0, .new_device = NewSplitDevice});
  ExpectSameSteps(run, reference);
  for (const int rank : {0, 1}) {
    ASSERT_EQ(of_device[rank].size(), 4u);
    EXPECT_EQ(of_device[rank], of_host[rank]) << "rank " << rank;
    for (const int copy : {0, 1}) {
      EXPECT_EQ(of_device[rank][2 + copy], of_device[1 - rank][copy])
          << "what rank " << rank << " holds is what the other has";
    }
  }
}

class DeviceCheckpoint : public testing::TestWithParam<bool> {};

TEST_P(DeviceCheckpoint, IsThatOfHostMemoryAndResumes) {
  const bool background = GetParam();
  const JobSpec plain = CheckpointedJob("plain", background);
  const TrainingRun reference = Train(plain, {});
  const JobSpec job = CheckpointedJob("split", background);
  const TrainingRun run =
      Train(job, {.trace_every = 0, .new_device = NewSplitDevice});
  ExpectSameSteps(run, reference);
  ASSERT_EQ(run.checkpoints.size(), 2u);
  for (size_t i = 0; i < run.checkpoints.size(); ++i) {
    ExpectSameTensors(run.checkpoints[i].path(),
                      reference.checkpoints[i].path());
  }
  JobSpec rest = job;
  rest.clear_checkpoint();
  const TrainingRun resumed = Train(rest, {.resume = run.checkpoints[0].path(),
                                           .trace_every = 0,
                                           .new_device = NewSplitDevice});
  ASSERT_TRUE(resumed.status().ok()) << resumed.status();
  ASSERT_EQ(resumed.steps[0].size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(resumed.steps[0][i].loss(), reference.steps[0][i + 10].loss());
  }
}

INSTANTIATE_TEST_SUITE_P(Background, DeviceCheckpoint, testing::Bool());

std::vector<int32_t> Continue(const std::string& checkpoint, Device& device) {
  TierBudget budget;
  budget.set_tier(DEVICE);
  budget.set_bytes(int64_t{1} << 28);
  HostAllocator host;
  DeviceAllocator memory(device);
  const TierArenas arenas({budget}, {.device = memory, .host = host});
  std::vector<int32_t> ids;
  const absl::Status status =
      ContinueText({.checkpoint = checkpoint,
                    .plan = TextPlanOf(checkpoint),
                    .prompt_ids = {1, 4, 13},
                    .max_new_tokens = 30,
                    .sampling = {.temperature = 0.7, .seed = 3}},
                   device, arenas, [&](const TextPiece& piece) {
                     ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
                     return absl::OkStatus();
                   });
  EXPECT_TRUE(status.ok()) << status;
  return ids;
}

TEST(DeviceMemory, TextIsContinuedAsFromHostMemory) {
  const TrainingRun run = Train(CheckpointedJob("text", false), {});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const std::string& path = run.checkpoints.back().path();
  const std::unique_ptr<Device> split = NewSplitDevice();
  const std::unique_ptr<Device> cpu = NewCpuDevice({.threads = 1});
  const std::vector<int32_t> ids = Continue(path, *split);
  EXPECT_EQ(ids.size(), 30u);
  EXPECT_EQ(ids, Continue(path, *cpu));
}

}  // namespace
}  // namespace troupe
