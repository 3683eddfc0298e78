// Plans with modules that predict further tokens, broken in the ways in which a
// module would learn other tokens, or count for more or less than the job says.
#include "proto/plan/check_modules.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_batch.h"
#include "proto/plan/check_program.h"
#include "tests/equivalence/small_job.h"
#include "tests/proto/plan/planted.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

JobSpec ModulesJob() {
  JobSpec job = SmallJobOf("deepseek_v3 with modules");
  job.mutable_model()->set_mtp_coefficient(0.5);
  job.mutable_training()->set_micro_batch_size(2);
  job.mutable_parallelism()->set_data(2);
  return job;
}

// 0: the model's; k: of module k.
Op& LossOf(Plan& plan, int module) {
  for (Unit& unit : *plan.mutable_units()) {
    for (Op& op : *plan.mutable_tables(unit.table())->mutable_ops()) {
      if (op.kind() == Op::CROSS_ENTROPY && module-- == 0) return op;
    }
  }
  ADD_FAILURE() << "no loss";
  return *plan.mutable_tables(0)->mutable_ops(0);
}

BatchTensor& TensorOfBatch(Plan& plan, const std::string& name) {
  for (BatchTensor& one : *plan.mutable_batch()) {
    if (one.tensor().name() == name) return one;
  }
  ADD_FAILURE() << "no " << name;
  return *plan.mutable_batch(0);
}

const PlantedFault kModuleFaults[] = {
    {"a module that counts twice",
     [](Plan& p) { LossOf(p, 1).set_added_weight(0.5); },
     "CROSS_ENTROPY is added with a weight of 0.5, not of 0.25"},
    {"a module in the place of the model",
     [](Plan& p) { LossOf(p, 2).clear_added_weight(); },
     "CROSS_ENTROPY is of targets 2 places further, not 0"},
    {"the model's loss is added to none",
     [](Plan& p) { LossOf(p, 0).set_added_weight(0.25); },
     "CROSS_ENTROPY is of targets 0 places further, not 1"},
    {"a weight of what is no loss",
     [](Plan& p) { NthOp(p, Op::ATTENTION, 0).set_added_weight(0.25); },
     "ATTENTION is no loss, and is added to one"},
    {"targets of another module",
     [](Plan& p) { TensorOfBatch(p, "targets+1").set_ahead(2); },
     "CROSS_ENTROPY is of targets 2 places further, not 1"},
    {"tokens of another module",
     [](Plan& p) { TensorOfBatch(p, "tokens+2").set_ahead(1); },
     "module 2 has no tokens 2 places further in the batch"},
    {"tokens of no module",
     [](Plan& p) { TensorOfBatch(p, "tokens").set_ahead(3); },
     "tokens 3 places further are loaded, and no module reads them"},
    {"a job with fewer modules",
     [](Plan& p) {
       p.mutable_job()->mutable_model()->set_num_nextn_predict_layers(1);
     },
     "CROSS_ENTROPY is added with a weight of 0.25, not of 0.5"},
};

TEST(CheckModulesTest, NamesTheFault) {
  const Plan whole = ExamplePlan(ModulesJob());
  ASSERT_EQ(CheckModules(whole), absl::OkStatus());
  for (const PlantedFault& fault : kModuleFaults) {
    Plan plan = whole;
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckModules(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

TEST(CheckModulesTest, OnlyTokensCanBeFurther) {
  JobSpec job = ModulesJob();
  Plan plan = ExamplePlan(job);
  BatchTensor& tokens = TensorOfBatch(plan, "tokens+1");
  tokens.set_source("positions");
  EXPECT_THAT(std::string(CheckBatch(plan).message()),
              HasSubstr("tensor tokens+1 of the batch is of 1 places further, "
                        "which positions cannot be"));
}

}  // namespace
}  // namespace troupe
