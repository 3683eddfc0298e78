#include "worker/instructions/step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/fp16.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

JobSpec SgdJob() {
  JobSpec job = SmallJob();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_weight_decay(0);
  job.mutable_training()->set_gradient_clipping(2);
  return job;
}

// Of the first weight of a norm, which is 1 at first, where every gradient
// is 1.
float WeightAfterStep(SmallRank& rank, double squared_norm) {
  const int64_t count =
      rank.Find(Buffer::PARAMETER_GRADIENTS, 3).bytes() / sizeof(float);
  float* gradient = rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, 3);
  std::fill(gradient, gradient + count, 1.0f);
  rank.Sum(kSquaredNormSum) = squared_norm;
  rank.state().step.learning_rate = 0.125;
  EXPECT_TRUE(rank.Run("O u3").ok());
  EXPECT_EQ(std::count(gradient, gradient + count, 0.0f), count);
  return rank.Memory<float>(Buffer::PARAMETERS, 3)[0];
}

TEST(Step, StepsByTheLearningRate) {
  SmallRank rank(SgdJob(), {});
  EXPECT_FLOAT_EQ(WeightAfterStep(rank, 4), 1 - 0.125);
}

TEST(Step, ClipsByTheGlobalNorm) {
  SmallRank rank(SgdJob(), {});
  EXPECT_NEAR(WeightAfterStep(rank, 64), 1 - 0.125 * 2 / 8, 1e-6);
}

// 1 - 2^-10 is exact in f32, but rounds to 1 in bf16: only the master weights
// remember such a step.
TEST(Step, OfBf16UpdatesTheMasterWeightsAndRoundsThem) {
  JobSpec job = SgdJob();
  job.mutable_training()->set_precision("bf16");
  SmallRank rank(job, {});
  const float* master = rank.Memory<float>(Buffer::MASTER_WEIGHTS, 3);
  const auto* parameters = rank.Memory<uint16_t>(Buffer::PARAMETERS, 3);
  float* gradient = rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, 3);
  rank.Sum(kSquaredNormSum) = 1;
  rank.state().step.learning_rate = 1.0 / 1024;
  for (const auto& [weight, bits] :
       {std::pair<float, uint16_t>{1 - 1.0f / 1024, 0x3f80},
        std::pair<float, uint16_t>{1 - 2.0f / 1024, 0x3f80},
        std::pair<float, uint16_t>{1 - 3.0f / 1024, 0x3f7f}}) {
    gradient[0] = 1;
    ASSERT_TRUE(rank.Run("O u3").ok());
    EXPECT_EQ(master[0], weight);
    EXPECT_EQ(parameters[0], bits);
  }
}

// A double reference of AdamW and of the scale of the loss, which counts its
// updates by itself.
struct ScaledAdamW {
  double scale = 65536;
  double weight = 1, first = 0, second = 0;
  int updates = 0;

  void Skip() { scale /= 2; }
  void Update(double gradient, double learning_rate) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.95;
    ++updates;
    first = kBeta1 * first + (1 - kBeta1) * gradient;
    second = kBeta2 * second + (1 - kBeta2) * gradient * gradient;
    weight -= learning_rate * first / (1 - std::pow(kBeta1, updates)) /
              (std::sqrt(second / (1 - std::pow(kBeta2, updates))) + 1e-8);
  }
};

TEST(Step, OfFp16LeavesOutWhatOverflowedAndCountsItsUpdates) {
  for (const char* of_gradients : {"f32", "parameters"}) {
    JobSpec job = SmallJob();
    job.mutable_training()->set_precision("fp16");
    job.mutable_training()->set_gradient_precision(of_gradients);
    SmallRank rank(job, {});
    const bool wide = job.training().gradient_precision() == "f32";
    float* master = rank.Memory<float>(Buffer::MASTER_WEIGHTS, 3);
    const auto* parameters = rank.Memory<uint16_t>(Buffer::PARAMETERS, 3);
    const auto* moments = rank.Memory<float>(Buffer::OPTIMIZER_STATE, 3);
    char* const gradients = rank.Memory<char>(Buffer::PARAMETER_GRADIENTS, 3);
    const size_t bytes = rank.Find(Buffer::PARAMETER_GRADIENTS, 3).bytes();
    ScaledAdamW want;
    const double learning_rate = rank.state().step.learning_rate = 0.03125;
    rank.state().step.step = 0;
    struct Gradient {
      double here;
      bool overflows_elsewhere = false;
    };
    for (const auto& [gradient, elsewhere] :
         {Gradient{INFINITY}, Gradient{0.25}, Gradient{NAN},
          Gradient{0.5, true}, Gradient{-0.5}, Gradient{0.125}}) {
      ++rank.state().step.step;
      const auto scaled = static_cast<float>(gradient * want.scale);
      const uint16_t narrow = ToFP16(scaled);
      std::memcpy(gradients, wide ? static_cast<const void*>(&scaled) : &narrow,
                  wide ? 4 : 2);
      const double squared_norm =
          elsewhere ? INFINITY : gradient * gradient * want.scale * want.scale;
      rank.Sum(kSquaredNormSum) = squared_norm;
      rank.state().squared_norm.reset();
      const std::vector<float> before = {master[0], moments[0]};
      ASSERT_TRUE(rank.Run("O u3").ok());
      rank.state().loss_scale.Update(squared_norm);
      if (std::isfinite(squared_norm)) {
        want.Update(gradient, learning_rate);
      } else {
        want.Skip();
        EXPECT_EQ(before, (std::vector<float>{master[0], moments[0]}));
      }
      EXPECT_NEAR(master[0], want.weight, 1e-6) << gradient;
      EXPECT_NEAR(moments[0], want.first, 1e-7) << gradient;
      EXPECT_EQ(parameters[0], ToFP16(master[0]));
      EXPECT_EQ(rank.state().loss_scale.factor(), want.scale);
      EXPECT_EQ(std::count(gradients, gradients + bytes, 0),
                static_cast<int64_t>(bytes));
    }
    EXPECT_EQ(want.updates, 3);
    EXPECT_EQ(rank.state().loss_scale.state().skipped_steps, 3);
  }
}

// As in a plan whose gradients move between tiers: there the next step begins
// them anew.
void OnlyReadGradients(Plan& plan) {
  for (Instruction& instruction :
       *plan.mutable_roles(0)->mutable_programs(0)->mutable_instructions()) {
    if (instruction.kind() != Instruction::STEP) continue;
    for (Instruction::Operand& operand : *instruction.mutable_operands()) {
      if (operand.part() != Instruction::WEIGHT_GRADIENTS) continue;
      operand.set_access(Instruction::READ);
    }
  }
}

TEST(Step, KeepsGradientsThatItOnlyReads) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_precision("fp16");
  SmallRank rank(job, {.change = OnlyReadGradients});
  const float* master = rank.Memory<float>(Buffer::MASTER_WEIGHTS, 3);
  float* gradient = rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, 3);
  rank.state().step.learning_rate = 0.125;
  for (const float value : {1024.0f, INFINITY}) {
    const float before = master[0];
    gradient[0] = value;
    rank.Sum(kSquaredNormSum) = value;
    rank.state().squared_norm.reset();
    ASSERT_TRUE(rank.Run("O u3").ok());
    EXPECT_EQ(gradient[0], value);
    EXPECT_EQ(master[0] == before, std::isinf(value)) << "it was left out";
  }
}

// Two versions of every unit's weights, the newest of which a STEP reads.
void KeepTwoVersions(Plan& plan) {
  Role& rank = *plan.mutable_roles(0);
  Program& program = *rank.mutable_programs(0);
  for (Instruction& instruction : *program.mutable_instructions()) {
    if (instruction.kind() != Instruction::STEP) continue;
    Buffer newest;
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (operand.part() != Instruction::WEIGHTS) continue;
      newest = program.buffers(operand.buffer());
    }
    rank.mutable_slots(newest.slot())->set_copies(2);
    newest.set_copy_offset(-1);
    *program.add_buffers() = newest;
    Instruction::Operand& old = *instruction.add_operands();
    old.set_part(Instruction::OLD_WEIGHTS);
    old.set_buffer(program.buffers_size() - 1);
  }
}

TEST(Step, OfSeveralVersionsTheNewestStaysAndTheOldestGives) {
  for (const char* precision : {"f32", "bf16"}) {
    JobSpec job = SgdJob();
    job.mutable_training()->set_precision(precision);
    SmallRank rank(job, {.change = KeepTwoVersions});
    const bool is_f32 = job.training().precision() == "f32";
    const auto first_weight = [&](const char* copy) {
      uint32_t bits = 0;
      std::memcpy(&bits, copy, is_f32 ? 4 : 2);
      if (!is_f32) bits <<= 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    };
    std::vector<char*> copies;
    for (const TierAddress& copy :
         rank.state().memory.Copies(rank.Find(Buffer::PARAMETERS, 3))) {
      copies.push_back(copy.memory());
    }
    ASSERT_EQ(copies.size(), 2u);
    float* gradient = rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, 3);
    rank.Sum(kSquaredNormSum) = 1;
    rank.state().step.learning_rate = 0.125;
    float newest = 1;
    for (const int64_t step : {1, 2, 3, 4}) {
      rank.state().step.step = step;
      gradient[0] = 1;
      ASSERT_TRUE(rank.Run("O u3").ok());
      EXPECT_EQ(first_weight(copies[(step + 1) % 2]), newest);
      newest -= 0.125f;
      EXPECT_EQ(first_weight(copies[step % 2]), newest);
    }
  }
}

}  // namespace
}  // namespace troupe
