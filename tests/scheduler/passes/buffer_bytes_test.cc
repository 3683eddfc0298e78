#include "scheduler/passes/buffer_bytes.h"

#include "gtest/gtest.h"
#include "proto/plan/slices.h"
#include "proto/plan/unit_builder.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(BufferBytes, FollowPrecisionAndOptimizer) {
  JobSpec job = ExampleJob({});
  const Plan f32 = ExampleDraft(job, "").plan;
  job.mutable_training()->set_precision("bf16");
  job.mutable_optimizer()->set_name("sgd");
  const Plan bf16 = ExampleDraft(job, "").plan;
  const int64_t elements = f32.units(1).flat_elements();
  EXPECT_EQ(BufferBytes(f32, f32.roles(0), Buffer::PARAMETERS, 1),
            4 * elements);
  EXPECT_EQ(BufferBytes(bf16, bf16.roles(0), Buffer::PARAMETERS, 1),
            2 * elements);
  EXPECT_EQ(BufferBytes(bf16, bf16.roles(0), Buffer::MASTER_WEIGHTS, 1),
            4 * elements);
  EXPECT_EQ(BufferBytes(f32, f32.roles(0), Buffer::OPTIMIZER_STATE, 1),
            8 * elements);
  EXPECT_EQ(BufferBytes(bf16, bf16.roles(0), Buffer::OPTIMIZER_STATE, 1), 0);
  EXPECT_EQ(BufferBytes(f32, f32.roles(0), Buffer::SNAPSHOT_COPY, 1),
            12 * elements);
}

// A copy of the slice that is the longest: 64 bytes more than the shortest.
TEST(BufferBytes, ACopyIsOfWhatARankWrites) {
  const Plan plan = ExampleDraft(ExampleJob({.data = 3}), "").plan;
  const int64_t lines = plan.units(1).flat_elements() / 16;
  ASSERT_NE(lines % 3, 0);
  const int64_t bytes = (lines / 3 + 1) * 64 * 3;
  EXPECT_EQ(BufferBytes(plan, plan.roles(0), Buffer::SNAPSHOT_COPY, 1), bytes);
}

// However many parts a unit has, a rank writes no more than rests there.
TEST(BufferBytes, ACopyOfASliceIsNoLargerThanTheSlice) {
  JobSpec job = ExampleJob({.data = 4});
  job.mutable_parallelism()->set_tensor(2);
  job.mutable_parallelism()->set_sequence_parallel(true);
  job.mutable_parallelism()->set_zero(1);
  const Plan plan = ExampleDraft(job, "").plan;
  ASSERT_GT(plan.units(1).parts_size(), 1);
  EXPECT_LE(BufferBytes(plan, plan.roles(0), Buffer::SNAPSHOT_COPY, 1),
            BufferBytes(plan, plan.roles(0), Buffer::MASTER_WEIGHTS, 1) * 3);
}

// Table 1 of arXiv 1910.02054, with moments in f32, and gradients too or in the
// type of the parameters: of psi parameters over N replicas, which divide them.
void ExpectBytesOfZero(const TrainingSpec& training, int zero) {
  constexpr int kReplicas = 2;
  JobSpec job = ExampleJob({.data = kReplicas});
  job.mutable_training()->MergeFrom(training);
  job.mutable_parallelism()->set_zero(zero);
  const Plan plan = ExampleDraft(job, "").plan;
  const int64_t psi = plan.units(1).flat_elements();
  const auto bytes = [&](Buffer::Kind kind) {
    return BufferBytes(plan, plan.roles(0), kind, 1);
  };
  const int64_t each = training.precision() == "f32" ? 4 : 2;
  const int64_t of_gradient =
      training.gradient_precision() == "parameters" ? each : 4;
  const int64_t states = zero >= 1 ? psi / kReplicas : psi;
  const int64_t gradients = zero >= 2 ? psi / kReplicas : psi;
  const int64_t parameters = zero >= 3 ? psi / kReplicas : psi;
  EXPECT_EQ(bytes(Buffer::OPTIMIZER_STATE), 8 * states);
  EXPECT_EQ(bytes(Buffer::MASTER_WEIGHTS), 4 * states);
  EXPECT_EQ(bytes(Buffer::PARAMETER_GRADIENTS), of_gradient * gradients);
  EXPECT_EQ(bytes(Buffer::PARAMETERS), each * parameters);
  const int64_t unsharded = zero >= 1 ? psi : 0;
  EXPECT_EQ(bytes(Buffer::UNSHARDED_PARAMETERS), each * unsharded);
  EXPECT_EQ(bytes(Buffer::UNSHARDED_GRADIENTS), of_gradient * unsharded);
}

TEST(BufferBytes, AreThoseOfZero) {
  for (const std::string precision : {"f32", "bf16", "fp16"}) {
    for (const std::string of_gradients : {"f32", "parameters"}) {
      TrainingSpec training;
      training.set_precision(precision);
      training.set_gradient_precision(of_gradients);
      for (const int zero : {0, 1, 2, 3}) ExpectBytesOfZero(training, zero);
    }
  }
}

// Four replicas, of which each has two of eight experts, and pairs the same
// ones with `expert: 2`: all else is in four slices, experts in 4 / expert.
TEST(BufferBytes, OfExpertsAreThoseOfTheirOwnSlices) {
  for (const int expert : {1, 2, 4}) {
    for (const int zero : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << expert << " " << zero);
      JobSpec job = ExampleJob({.data = 4});
      ModelSpec& model = *job.mutable_model();
      model.set_architecture("mixtral");
      model.set_intermediate_size(16);
      model.set_num_experts(8);
      job.mutable_parallelism()->set_expert(expert);
      job.mutable_parallelism()->set_zero(zero);
      const Plan plan = ExampleDraft(job, "").plan;
      int64_t experts = 0;
      int64_t others = 0;
      for (const Parameter& parameter : plan.units(1).parameters()) {
        const bool is_expert =
            parameter.dims(0).sections(0).kind() == Dim::EXPERT_WEIGHTS;
        (is_expert ? experts : others) += FlatAligned(LocalElements(parameter));
      }
      const int64_t slices = others / 4 + experts / (4 / expert);
      const int64_t apart = others + (expert == 4 ? 0 : experts);
      const int64_t all = others + experts;
      const auto elements = [&](Buffer::Kind kind) {
        return BufferBytes(plan, plan.roles(0), kind, 1) / 4;
      };
      EXPECT_EQ(elements(Buffer::OPTIMIZER_STATE), 2 * slices);
      EXPECT_EQ(elements(Buffer::PARAMETER_GRADIENTS),
                zero >= 2 ? slices : all);
      EXPECT_EQ(elements(Buffer::PARAMETERS), zero >= 3 ? slices : all);
      EXPECT_EQ(elements(Buffer::UNSHARDED_PARAMETERS), apart);
      EXPECT_EQ(elements(Buffer::UNSHARDED_GRADIENTS), apart);
    }
  }
}

TEST(BufferBytes, AreThoseOfAMicroBatch) {
  const Plan plan = ExampleDraft(ExampleJob({.micro_batch_size = 2}), "").plan;
  // Tokens and targets of 2 sequences of 8.
  EXPECT_EQ(BufferBytes(plan, plan.roles(0), Buffer::BATCH, -1), 2 * 2 * 8 * 4);
  EXPECT_EQ(BufferBytes(plan, plan.roles(0), Buffer::ACTIVATION, 1),
            plan.units(1).activation_bytes());
  // The head hands nothing on.
  EXPECT_EQ(BufferBytes(plan, plan.roles(0), Buffer::ACTIVATION, 3), 0);
}

}  // namespace
}  // namespace troupe
