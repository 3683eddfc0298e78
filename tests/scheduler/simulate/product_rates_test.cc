#include "scheduler/simulate/product_rates.h"

#include "gtest/gtest.h"
#include "proto/plan/ops/op_rules.h"
#include "scheduler/simulate/rates.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// One rate for each form, whatever the size.
Calibration OneRateAForm() {
  Calibration calibration;
  double rate = 1e9;
  for (const ProductForm form : {PLAIN, TRANSPOSED, GRADIENT}) {
    MatmulRate& measured = *calibration.add_matmul();
    measured.set_dtype(F32);
    measured.set_form(form);
    measured.set_m(64);
    measured.set_n(64);
    measured.set_k(64);
    measured.set_flops_per_second(rate);
    rate *= 2;
  }
  return CompletedCalibration(calibration);
}

TEST(ProductRates, Gpt2BlocksMultiplyWithTheirWeightsAsTheyLie) {
  const Plan plan = ExamplePlan(ExampleJob({}));
  const std::vector<ProductRates> rates = ProductRatesOf(plan, OneRateAForm());
  ASSERT_EQ(rates.size(), 4u);
  EXPECT_NEAR(rates[1].forward, 1e9, 1);
  EXPECT_NEAR(rates[1].backward_input, 2e9, 1);
  EXPECT_NEAR(rates[1].backward_weight, 4e9, 1);
  EXPECT_EQ(rates[2].forward, rates[1].forward);
}

TEST(ProductRates, TheVocabularyProjectionTransposesIts) {
  const Plan plan = ExamplePlan(ExampleJob({}));
  const ProductRates head = ProductRatesOf(plan, OneRateAForm()).back();
  EXPECT_NEAR(head.forward, 2e9, 1);
  EXPECT_NEAR(head.backward_input, 1e9, 1);
  EXPECT_NEAR(head.backward_weight, 4e9, 1);
}

// 64 of 128 positions on a rank; head_dim 8. Of a block's products those with
// weights are 4 x 16 x 16 and 8 x 16 x 16 a position, of each hop 2 x 64 x 16.
TEST(ProductRates, ScoresAreOfTheSizeOfAHead) {
  JobSpec job = ExampleJob({});
  job.mutable_model()->set_max_position_embeddings(128);
  job.mutable_training()->set_sequence_length(128);
  job.mutable_parallelism()->set_context(2);
  job.mutable_parallelism()->set_context_method("ring_self_attention");
  const ProductRates block =
      ProductRatesOf(ExamplePlan(job), OneRateAForm()).at(1);
  const double linears = 12 * 16 * 16;
  const double scores = 2 * 64 * 16;
  // Scores are transposed products, weighted values are not.
  EXPECT_NEAR(block.forward,
              1e9 * (linears + 2 * scores) / (linears + scores + scores / 2),
              1e3);
  // Each has two gradients, one of them of the rows that are summed.
  EXPECT_NEAR(block.backward_input,
              1e9 * (linears + 4 * scores) /
                  (linears / 2 + scores + scores / 2 + 2 * scores / 4),
              1e3);
  EXPECT_NEAR(block.backward_weight, 4e9, 1);
}

// Products that no pass makes do not count: of weights that are frozen, and of
// inputs before which nothing is trained.
TEST(ProductRates, LeaveOutWhatFrozenWeightsSpare) {
  JobSpec job = ExampleJob({});
  job.mutable_model()->set_tie_word_embeddings(false);
  for (const char* const pattern : {"*.wte.*", "*.wpe.*", "*.h.0.*"}) {
    job.mutable_training()->add_freeze(pattern);
  }
  const Plan plan = ExamplePlan(job);
  const Calibration calibration = OneRateAForm();
  const double any = calibration.matmul(0).flops_per_second();
  const std::vector<ProductRates> rates = ProductRatesOf(plan, calibration);
  EXPECT_EQ(rates[1].backward_input, any);
  EXPECT_EQ(rates[1].backward_weight, any);
  const UnitTable& table = plan.tables(plan.units(1).table());
  for (const Op& op : table.ops()) {
    const PassProducts products = RulesOf({table, op}).products;
    EXPECT_TRUE(products.backward_input.empty()) << op.kind();
    EXPECT_TRUE(products.backward_weight.empty()) << op.kind();
  }
  EXPECT_NEAR(rates[2].backward_input, 2e9, 1);
  EXPECT_NEAR(rates[2].backward_weight, 4e9, 1);
}

TEST(ProductRates, LlamaTransposesAllWeights) {
  JobSpec job = ExampleJob({});
  job.mutable_model()->set_architecture("llama");
  const ProductRates block =
      ProductRatesOf(ExamplePlan(job), OneRateAForm()).at(1);
  EXPECT_NEAR(block.forward, 2e9, 1);
  EXPECT_NEAR(block.backward_input, 1e9, 1);
}

}  // namespace
}  // namespace troupe
