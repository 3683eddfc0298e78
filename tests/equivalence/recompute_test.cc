// What is not kept but made again changes nothing: every loss, gradient norm
// and weight of the same plan without recomputation, bit for bit, dropout
// included.
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/memory.h"
#include "scheduler/pipelines/pipelines.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/state_difference.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

constexpr int kSteps = 4;

struct Trained {
  TrainingRun run;
  std::string checkpoint;
};

Trained TrainInto(const std::string& name, JobSpec job) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_steps(kSteps);
  const ParallelismSpec& cut = job.parallelism();
  const int ranks = std::max(1, cut.pipeline()) * std::max(1, cut.data()) *
                    std::max(1, cut.tensor());
  Trained trained = {.run = Train(job, {.ranks = ranks}),
                     .checkpoint = CheckpointPath(directory, kSteps)};
  CHECK_OK(trained.run.status());
  return trained;
}

// The same plan that keeps all, trained once for all tests.
const Trained& KeepsAll(const JobSpec& job) {
  static auto* const runs = new std::map<std::string, Trained>;
  const auto [found, is_new] = runs->try_emplace(job.SerializeAsString());
  if (is_new) {
    found->second = TrainInto(absl::StrCat("keeps_all_", runs->size()), job);
  }
  return found->second;
}

int Recomputations(const Plan& plan) {
  int count = 0;
  for (const Role& role : plan.roles()) {
    for (const Program& program : role.programs()) {
      for (const Instruction& instruction : program.instructions()) {
        count += instruction.kind() == Instruction::RECOMPUTE;
      }
    }
  }
  return count;
}

int64_t Activations(const Plan& plan) {
  int64_t bytes = 0;
  for (const Role& role : plan.roles()) {
    for (const MemoryItem& item : MemoryItems(role)) {
      if (item.item() == "activations") bytes += item.bytes();
    }
  }
  return bytes;
}

void ExpectTheSame(const JobSpec& job, const RecomputeSpec& recompute) {
  const Trained& want = KeepsAll(job);
  JobSpec again = job;
  *again.mutable_memory()->mutable_recompute() = recompute;
  const Trained got = TrainInto("made_again", again);
  EXPECT_GT(Recomputations(got.run.plan), 0);
  EXPECT_EQ(Recomputations(want.run.plan), 0);
  EXPECT_EQ(got.run.bytes_left, 0u);
  ASSERT_EQ(got.run.steps.size(), want.run.steps.size());
  for (size_t rank = 0; rank < got.run.steps.size(); ++rank) {
    ASSERT_EQ(got.run.steps[rank].size(), size_t{kSteps});
    for (int s = 0; s < kSteps; ++s) {
      const StepRecord& a = got.run.steps[rank][s];
      const StepRecord& b = want.run.steps[rank][s];
      EXPECT_EQ(a.loss(), b.loss()) << "rank " << rank << ", step " << s + 1;
      EXPECT_EQ(a.grad_norm(), b.grad_norm())
          << "rank " << rank << ", step " << s + 1;
    }
  }
  const StateDifference states = CompareStates(got.checkpoint, want.checkpoint);
  EXPECT_EQ(states.weights, 0);
  EXPECT_EQ(states.moments, 0);
}

RecomputeSpec Mode(const std::string& mode) {
  RecomputeSpec spec;
  spec.set_mode(mode);
  return spec;
}

// Schedule, mode.
using Schedule = std::tuple<std::string, std::string>;
class RecomputeUnderSchedule : public testing::TestWithParam<Schedule> {};

// Eight units; where costs decide which rank holds which, they would hold
// others.
JobSpec ScheduledJob(const std::string& schedule) {
  JobSpec job =
      CutJob(PipelineJob({.dropout = 0.1}), PipelineCut{.schedule = schedule});
  job.mutable_training()->set_validate_every(0);
  const int stages = 2 * FindPipeline(schedule)->default_virtual_stages;
  for (int s = 0; s < stages; ++s) {
    job.mutable_parallelism()->add_stages(8 / stages);
  }
  return job;
}

TEST_P(RecomputeUnderSchedule, TrainsTheSameBitForBit) {
  const auto& [schedule, mode] = GetParam();
  ExpectTheSame(ScheduledJob(schedule), Mode(mode));
}

std::vector<std::string> Schedules() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    names.emplace_back(pipeline.name);
  }
  return names;
}

template <typename Case>
std::string Joined(const testing::TestParamInfo<Case>& info) {
  return std::apply(
      [](const auto&... parts) {
        std::string name;
        (absl::StrAppend(&name, name.empty() ? "" : "_", parts), ...);
        return name;
      },
      info.param);
}

INSTANTIATE_TEST_SUITE_P(All, RecomputeUnderSchedule,
                         testing::Combine(testing::ValuesIn(Schedules()),
                                          testing::Values("selective", "full")),
                         Joined<Schedule>);

// Architecture, mode, ranks of a unit, sequence parallelism. bf16 where a unit
// is cut by rows of heads only.
using Cut = std::tuple<std::string, std::string, int, bool>;
class RecomputeWithinUnits : public testing::TestWithParam<Cut> {};

TEST_P(RecomputeWithinUnits, TrainsTheSameBitForBit) {
  const auto& [architecture, mode, tensor, sequence] = GetParam();
  JobSpec job = TensorJob({.architecture = architecture, .dropout = 0.1});
  job.mutable_training()->set_validate_every(0);
  if (tensor > 1) job.mutable_parallelism()->set_tensor(tensor);
  if (sequence) job.mutable_parallelism()->set_sequence_parallel(true);
  if (sequence || tensor == 1) job.mutable_training()->set_precision("bf16");
  ExpectTheSame(job, Mode(mode));
}

using testing::Bool;
using testing::Combine;
using testing::Values;
const auto kArchitectures =
    Values("gpt2", "gpt_neox", "llama", "mistral", "qwen2", "qwen3",
           "qwen3_moe", "olmoe", "deepseek_v3");
INSTANTIATE_TEST_SUITE_P(Whole, RecomputeWithinUnits,
                         Combine(kArchitectures, Values("selective", "full"),
                                 Values(1), Values(false)),
                         Joined<Cut>);
INSTANTIATE_TEST_SUITE_P(Cut, RecomputeWithinUnits,
                         Combine(kArchitectures, Values("selective", "full"),
                                 Values(2), Bool()),
                         Joined<Cut>);

// Parameters that rest in slices are gathered for it, too.
TEST(Recompute, OfUnitsInSlicesIsTheSameBitForBit) {
  for (const int zero : {1, 3}) {
    for (const bool sequence : {false, true}) {
      const JobSpec job = CutJob(
          TensorJob({.architecture = "llama", .dropout = 0.1}),
          JobCut{.tensor = 2, .sequence = sequence, .data = 2, .zero = zero});
      ExpectTheSame(job, Mode("selective"));
      ExpectTheSame(job, Mode("full"));
    }
  }
}

// The head too, whose loss is not counted again, also where ranks have some of
// the vocabulary each.
TEST(Recompute, OfListedUnitsIsTheSameBitForBit) {
  RecomputeSpec listed;
  for (const int unit : {0, 2, 5, 7}) listed.add_units(unit);
  for (const int unit : {1, 6}) listed.add_selective_units(unit);
  for (const char* const schedule : {"gpipe", "pipedream", "zb_h1"}) {
    SCOPED_TRACE(schedule);
    ExpectTheSame(ScheduledJob(schedule), listed);
    JobSpec cut = ScheduledJob(schedule);
    cut.mutable_model()->set_num_attention_heads(2);
    cut.mutable_parallelism()->set_tensor(2);
    ExpectTheSame(cut, listed);
  }
}

TEST(Recompute, KeepsLessAndValidatesAsBefore) {
  JobSpec job = TensorJob({.architecture = "llama", .dropout = 0.1});
  job.mutable_training()->set_validate_every(2);
  job.mutable_training()->set_micro_batch_size(1);
  std::vector<int64_t> bytes;
  std::vector<double> losses;
  for (const char* const mode : {"none", "selective", "full"}) {
    *job.mutable_memory()->mutable_recompute() = Mode(mode);
    const Trained trained = TrainInto("validated", job);
    bytes.push_back(Activations(trained.run.plan));
    losses.push_back(trained.run.steps[0].back().validation_loss());
  }
  EXPECT_GT(bytes[0], bytes[1]);
  EXPECT_GT(bytes[1], bytes[2]);
  EXPECT_GT(losses[0], 0);
  EXPECT_EQ(losses[1], losses[0]);
  EXPECT_EQ(losses[2], losses[0]);
}

}  // namespace
}  // namespace troupe
