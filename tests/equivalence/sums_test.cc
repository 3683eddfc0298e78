// A sum that no plan of today has: the blocks of a model each add up three
// numbers of what they make. What the scheduler is told of them is the same on
// all ranks, to the bit, and the single rank's but for rounding, however the
// model lies over ranks.
#include "proto/plan/sums.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/status.h"
#include "proto/plan/check_program.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/start_draft.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/tensor_job.h"
#include "worker/model/build_units.h"

namespace troupe {
namespace {

constexpr char kName[] = "outputs";
constexpr int kElements = 3;

// The job's plan with the sums of its blocks.
Plan WithSums(const Plan& plan) {
  Draft draft = StartDraft(plan.job()).value();
  for (Unit& unit : *draft.plan.mutable_units()) {
    if (unit.kind() != Unit::BLOCK) continue;
    Unit::Addend& addend = *unit.add_addends();
    addend.set_sum(kName);
    addend.set_elements(kElements);
    addend.set_own(true);
  }
  RunPasses(draft);
  EXPECT_EQ(CheckPrograms(draft.plan), absl::OkStatus());
  return draft.plan;
}

// A block that counts what it has made: elements, their sum and the sum of
// their squares. Neighbours along the tensor axis have the same: the first one
// counts.
class CountingUnit final : public ModelUnit {
 public:
  CountingUnit(std::unique_ptr<ModelUnit> unit, const SumPlace& sum,
               bool counts)
      : unit_(std::move(unit)), sum_(sum), counts_(counts) {}

  const Unit& spec() const override { return unit_->spec(); }
  void Forward(Device& device, const MicroBatchContext& context,
               const UnitBuffers& buffers) const override {
    unit_->Forward(device, context, buffers);
    if (buffers.scalars == nullptr || !counts_) return;
    double* const sum = buffers.scalars + sum_.first;
    const auto* const output = static_cast<const float*>(buffers.output[0]);
    const int64_t count = spec().activation_bytes() / sizeof(float);
    for (int64_t i = 0; i < count; ++i) {
      sum[0] += 1;
      sum[1] += output[i];
      sum[2] += static_cast<double>(output[i]) * output[i];
    }
  }
  void Recompute(Device& device, const MicroBatchContext& context,
                 const UnitBuffers& buffers) const override {
    unit_->Recompute(device, context, buffers);
  }
  void BackwardInput(Device& device, const MicroBatchContext& context,
                     const UnitBuffers& buffers) const override {
    unit_->BackwardInput(device, context, buffers);
  }
  void BackwardWeight(Device& device, const MicroBatchContext& context,
                      const UnitBuffers& buffers) const override {
    unit_->BackwardWeight(device, context, buffers);
  }

 private:
  const std::unique_ptr<ModelUnit> unit_;
  const SumPlace sum_;
  const bool counts_;
};

absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> CountingUnits(
    const Plan& plan, int rank) {
  ASSIGN_OR_RETURN(auto units, BuildUnits(plan, rank));
  for (int u = 0; u < plan.units_size(); ++u) {
    if (plan.units(u).kind() != Unit::BLOCK) continue;
    units[u] = std::make_unique<CountingUnit>(
        std::move(units[u]), PlaceOfSum(plan, kName, u),
        CoordinateOn(plan.mesh(), "tensor", rank) == 0);
  }
  return units;
}

JobSpec Job(const JobCut& cut) {
  JobSpec job = CutJob(TensorJob({}), cut);
  job.mutable_training()->set_steps(3);
  // So that a schedule may sum late.
  job.mutable_training()->set_gradient_clipping(0);
  return job;
}

TrainingRun Run(const JobSpec& job) {
  TrainingRun run =
      Train(job, {.ranks = static_cast<int>(RanksNeeded(job)),
                  .change_plan = [](Plan& plan) { plan = WithSums(plan); },
                  .build_units = CountingUnits});
  EXPECT_EQ(run.status(), absl::OkStatus());
  return run;
}

void ExpectTheSumsOf(const TrainingRun& single, const TrainingRun& run) {
  for (size_t rank = 1; rank < run.sums.size(); ++rank) {
    EXPECT_EQ(run.sums[rank], run.sums[0]) << rank;
  }
  const std::vector<std::vector<double>>& want = single.sums[0];
  const std::vector<std::vector<double>>& got = run.sums[0];
  ASSERT_EQ(got.size(), want.size());
  const int64_t all = SumElements(run.plan.sums());
  ASSERT_GE(all, 5 + 2 * kElements) << "two blocks";
  for (size_t step = 0; step < got.size(); ++step) {
    ASSERT_EQ(static_cast<int64_t>(got[step].size()), all);
    for (int64_t i = 0; i < all; ++i) {
      EXPECT_NEAR(got[step][i], want[step][i],
                  1e-3 * (1 + std::abs(want[step][i])))
          << "step " << step + 1 << ", element " << i;
    }
    for (int u = 0; u < run.plan.units_size(); ++u) {
      if (run.plan.units(u).kind() != Unit::BLOCK) continue;
      const int64_t count = PlaceOfSum(run.plan, kName, u).first;
      EXPECT_GT(got[step][count], 0);
      EXPECT_EQ(got[step][count], want[step][count]) << "exactly as many";
    }
  }
}

void ExpectTheSumsOfOne(const JobCut& cut) {
  static const auto* const single = new TrainingRun(Run(Job({})));
  ExpectTheSumsOf(*single, Run(Job(cut)));
}

TEST(Sums, OfAPipelineAreTheSingleRanks) {
  ExpectTheSumsOfOne({.pipeline = 2});
}

TEST(Sums, OfPipelineDataAndTensorAreTheSingleRanks) {
  ExpectTheSumsOfOne({.tensor = 2, .pipeline = 2, .data = 2});
}

TEST(Sums, OfAContextAreTheSingleRanks) {
  ExpectTheSumsOfOne({.data = 2, .context = 2});
}

TEST(Sums, OfPipelinesThatSumLateAreTheSingleRanks) {
  ExpectTheSumsOfOne({.schedule = "zb_h2", .pipeline = 2, .data = 2});
}

// Weights stay as they are, so that older ones are the same.
JobSpec Still(const JobCut& cut, int micro_batch_size) {
  JobSpec job = Job(cut);
  job.mutable_training()->set_steps(7);
  job.mutable_training()->set_validate_every(3);
  job.mutable_training()->set_micro_batch_size(micro_batch_size);
  job.mutable_lr_scheduler()->set_warmup_steps(2);
  job.mutable_optimizer()->set_lr(1e-30);
  job.mutable_optimizer()->set_weight_decay(0);
  return job;
}

void ExpectTheValidationsOf(const TrainingRun& single, const TrainingRun& run) {
  for (size_t i = 0; i < single.steps[0].size(); ++i) {
    const StepRecord& want = single.steps[0][i];
    const StepRecord& got = run.steps[0].at(i);
    EXPECT_EQ(got.has_validation_loss(), want.has_validation_loss());
    EXPECT_NEAR(got.validation_loss(), want.validation_loss(), 1e-4);
  }
}

void ExpectTheSumsOfOneAhead(const JobCut& cut, int micro_batch_size) {
  static const auto* const single = new TrainingRun(Run(Still({}, 2)));
  SCOPED_TRACE(absl::StrCat("pipeline ", cut.pipeline, ", tensor ", cut.tensor,
                            ", context ", cut.context, ", micro-batches of ",
                            micro_batch_size));
  const TrainingRun run = Run(Still(cut, micro_batch_size));
  ExpectTheSumsOf(*single, run);
  ExpectTheValidationsOf(*single, run);
}

// Blocks add to the sums of steps that come up to three programs later, also
// while a step is validated.
TEST(Sums, OfPipelinesThatComputeAheadAreTheSingleRanks) {
  for (const int micro_batch_size : {2, 8}) {
    for (const JobCut& cut :
         {JobCut{.schedule = "pipedream", .pipeline = 2},
          JobCut{.schedule = "pipedream", .pipeline = 4},
          JobCut{.tensor = 2, .schedule = "pipedream", .pipeline = 2},
          JobCut{.schedule = "pipedream", .pipeline = 2, .context = 2}}) {
      ExpectTheSumsOfOneAhead(cut, micro_batch_size);
    }
  }
}

}  // namespace
}  // namespace troupe
