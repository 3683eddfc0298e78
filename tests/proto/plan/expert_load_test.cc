#include "proto/plan/expert_load.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/ops/op_view.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BusiestOverEven, IsOfTheRankWhoseNeighbouringExpertsHaveMost) {
  EXPECT_EQ(BusiestOverEven({1, 1, 1, 1}, 2), 1);
  EXPECT_EQ(BusiestOverEven({0, 0, 4, 0}, 2), 2);
  EXPECT_EQ(BusiestOverEven({0, 0, 4, 0}, 4), 4);
  EXPECT_EQ(BusiestOverEven({2, 0, 2, 0}, 2), 1);
  EXPECT_DOUBLE_EQ(BusiestOverEven({5, 2, 3, 0}, 2), 1.4);
  EXPECT_EQ(BusiestOverEven({5, 2, 3, 0}, 1), 1);
}

// Four ranks, each with one of four experts; rounds of 1.5 times the rows that
// a rank dispatches.
JobSpec ExpertsJob() {
  JobSpec job = ExampleJob({.data = 4});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("mixtral");
  model.set_intermediate_size(12);
  model.set_num_experts(4);
  job.mutable_parallelism()->set_expert(4);
  job.mutable_parallelism()->set_expert_slack(1.5);
  return job;
}

// In units of the rows that a rank dispatches, by round: what comes, and what
// is computed of it.
struct Expected {
  std::vector<double> received;
  std::vector<double> computed;
};
Expected RowsIn(const UnitTable& table) {
  Expected expected;
  double even = 0;
  for (const Op& op : table.ops()) {
    const OpView view(table, op);
    if (op.kind() == Op::DISPATCH) even = Rows(view.output("rows"));
    if (op.kind() == Op::REGROUP) {
      expected.received.push_back(Rows(view.input("x")) / even);
    }
    if (op.kind() == Op::UNGROUP) {
      expected.computed.push_back(Rows(view.input("x")) / even);
    }
  }
  return expected;
}
const UnitTable& TableOf(const Plan& plan, int unit) {
  return plan.tables(plan.units(unit).table());
}

TEST(ExpectRows, FillsOneRoundAfterTheOther) {
  Plan plan = ExamplePlan(ExpertsJob());
  UnitTable& table = *plan.mutable_tables(plan.units(1).table());
  EXPECT_EQ(RanksOfExperts(table), 4);
  EXPECT_THAT(RowsIn(table).received, ElementsAre(1, 0, 0));
  ExpectRows(2, table);
  EXPECT_THAT(RowsIn(table).received, ElementsAre(1.5, 0.5, 0));
  EXPECT_THAT(RowsIn(table).computed, ElementsAre(1.5, 0.5, 0));
  ExpectRows(4, table);
  EXPECT_THAT(RowsIn(table).received, ElementsAre(1.5, 1.5, 1));
  ExpectRows(1, table);
  EXPECT_THAT(RowsIn(table).received, ElementsAre(1, 0, 0));
}

TEST(ExpectRows, LeavesOtherTablesAlone) {
  Plan plan = ExamplePlan(ExpertsJob());
  UnitTable& table = *plan.mutable_tables(plan.units(0).table());
  const std::string before = table.SerializeAsString();
  EXPECT_EQ(RanksOfExperts(table), 0);
  ExpectRows(3, table);
  EXPECT_EQ(table.SerializeAsString(), before);
}

JobSpec Measured(const std::vector<std::vector<double>>& loads) {
  JobSpec job = ExpertsJob();
  ExpertsSpec& experts = *job.mutable_model()->mutable_experts();
  experts.set_load("measured");
  for (size_t layer = 0; layer < loads.size(); ++layer) {
    MeasuredLoad& measured = *experts.add_measured();
    measured.set_unit(static_cast<int>(layer) + 1);
    measured.mutable_load()->Assign(loads[layer].begin(), loads[layer].end());
  }
  return job;
}

// Both layers have one table: 3 and 1 times an even load.
TEST(ExpectMeasuredLoad, IsTheMeanOfTheLayersOfATable) {
  const Plan plan = ExamplePlan(Measured({{0, 3, 1, 0}, {1, 1, 1, 1}}));
  ASSERT_EQ(plan.units(1).table(), plan.units(2).table());
  EXPECT_THAT(RowsIn(TableOf(plan, 1)).received, ElementsAre(1.5, 0.5, 0));
}

TEST(ExpectMeasuredLoad, RefusesTheLoadOfAnotherModel) {
  const auto refusal = [](const JobSpec& job) {
    return std::string(CompilePlan(job, ExampleWorkers(4)).status().message());
  };
  EXPECT_THAT(refusal(Measured({{1, 1, 1, 1}})),
              HasSubstr("model.experts.measured: has no load of unit 2"));
  EXPECT_THAT(refusal(Measured({{1, 1, 1, 1}, {1, 1}})),
              HasSubstr("model.experts.measured: has the load of 2 experts of "
                        "unit 2, which has 4"));
  EXPECT_THAT(refusal(Measured({{1, 1, 1, 1}, {0, 0, 0, 0}})),
              HasSubstr("model.experts.measured[1].load: no expert has any"));
  EXPECT_THAT(refusal(Measured({})),
              HasSubstr("model.experts.load: measured needs "
                        "model.experts.load_file"));
  JobSpec job = Measured({{1, 1, 1, 1}});
  job.mutable_model()->mutable_experts()->set_load("uniform");
  EXPECT_THAT(refusal(job), HasSubstr("model.experts.measured: is used with "
                                      "load measured; leave it out"));
}

}  // namespace
}  // namespace troupe
