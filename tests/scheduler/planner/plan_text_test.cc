#include "scheduler/planner/plan_text.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"
#include "proto/plan/text_parts.h"
#include "scheduler/planner/choose_backends.h"
#include "tests/graphs/skip_graph.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TextPlan PlanOf(const JobSpec& job) {
  const absl::StatusOr<TextPlan> plan = PlanText(job);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(TextPlan());
}

JobSpec Cut(int tensor, int pipeline) {
  JobSpec job = ExampleJob({});
  job.mutable_parallelism()->set_tensor(tensor);
  job.mutable_parallelism()->set_pipeline(pipeline);
  return job;
}

int Exchanges(const TextPlan& plan) {
  int exchanges = 0;
  for (const UnitTable& table : plan.tables()) {
    for (const Op& op : table.ops()) exchanges += op.kind() == Op::EXCHANGE;
  }
  return exchanges;
}

int64_t WeightBytes(const TextPlan& plan) {
  int64_t bytes = 0;
  for (const int64_t of_rank : plan.weight_bytes()) bytes += of_rank;
  return bytes;
}

TEST(PlanText, OneRankHasTheWholeModelAndNobodyToTalkTo) {
  const TextPlan plan = PlanOf(Cut(1, 1));
  EXPECT_EQ(MeshSize(plan.mesh()), 1);
  EXPECT_TRUE(plan.groups().empty());
  ASSERT_EQ(plan.stages_size(), 1);
  EXPECT_EQ(plan.stages(0).unit_count(), plan.units_size());
  EXPECT_EQ(Exchanges(plan), 0);
  int64_t elements = 0;
  for (const Unit& unit : plan.units()) elements += unit.flat_elements();
  EXPECT_THAT(plan.weight_bytes(), ElementsAre(4 * elements));
}

// What else a job does with its ranks, its micro-batches and its dropout is of
// training only.
TEST(PlanText, OfAJobItsModelAndItsCutAreEnough) {
  JobSpec job = Cut(2, 2);
  const std::string plan = PlanOf(job).SerializeAsString();
  job.mutable_parallelism()->set_data(3);
  job.mutable_parallelism()->set_sequence_parallel(true);
  job.mutable_parallelism()->set_pipeline_schedule("interleaved_1f1b");
  job.mutable_parallelism()->set_virtual_stages(2);
  job.mutable_training()->set_dropout(0.5);
  job.mutable_training()->set_micro_batch_size(7);
  EXPECT_EQ(PlanOf(job).SerializeAsString(), plan);
}

TEST(PlanText, StagesAreConsecutiveAndHaveAllUnits) {
  const TextPlan plan = PlanOf(Cut(2, 2));
  ASSERT_EQ(plan.stages_size(), 2);
  EXPECT_EQ(plan.stages(0).unit(), 0);
  EXPECT_EQ(plan.stages(1).unit(), plan.stages(0).unit_count());
  EXPECT_EQ(plan.stages(1).unit() + plan.stages(1).unit_count(),
            plan.units_size());
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(StageOfText(plan, rank).unit(), plan.stages(rank / 2).unit());
  }
}

TEST(PlanText, StagesAreTheJobsWhereItSaysThem) {
  JobSpec job = Cut(1, 2);
  const int units = PlanOf(job).units_size();
  job.mutable_parallelism()->add_stages(1);
  job.mutable_parallelism()->add_stages(units - 1);
  EXPECT_EQ(PlanOf(job).stages(0).unit_count(), 1);
  // Of another number of stages they say nothing.
  job.mutable_parallelism()->set_pipeline(3);
  EXPECT_EQ(PlanOf(job).stages_size(), 3);
}

TEST(PlanText, GroupsAreAllRanksAndTheNeighboursAlongEachAxisThatCuts) {
  const TextPlan plan = PlanOf(Cut(2, 2));
  ASSERT_EQ(plan.groups_size(), 2);
  EXPECT_THAT(MembersOf(plan.mesh(), plan.groups(0), 2),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(MembersOf(plan.mesh(), plan.groups(1), 0), ElementsAre(0, 1));
  EXPECT_THAT(MembersOf(plan.mesh(), plan.groups(1), 2), ElementsAre(2, 3));
  EXPECT_EQ(PlanOf(Cut(1, 2)).groups_size(), 1);
}

// A tied table is on both ends of the pipeline.
TEST(PlanText, ARankHoldsWhatItsUnitsAreTiedTo) {
  for (const bool tied : {false, true}) {
    JobSpec job = Cut(1, 2);
    job.mutable_model()->set_tie_word_embeddings(tied);
    const TextPlan plan = PlanOf(job);
    const std::vector<int> last = UnitsOfText(plan, 1);
    EXPECT_EQ(last.front(), tied ? 0 : plan.stages(1).unit());
    EXPECT_EQ(last.back(), plan.units_size() - 1);
    const TextPlan whole = [&] {
      JobSpec one = job;
      one.mutable_parallelism()->set_pipeline(1);
      return PlanOf(one);
    }();
    const int64_t twice = tied ? 4 * whole.units(0).flat_elements() : 0;
    EXPECT_EQ(WeightBytes(plan), WeightBytes(whole) + twice);
  }
}

TEST(PlanText, EachRankHasLessOfAModelThatIsCut) {
  const int64_t whole = PlanOf(Cut(1, 1)).weight_bytes(0);
  const TextPlan cut = PlanOf(Cut(2, 1));
  ASSERT_EQ(cut.weight_bytes_size(), 2);
  for (const int64_t bytes : cut.weight_bytes()) {
    EXPECT_LT(bytes, 0.6 * whole);
  }
}

TEST(PlanText, SaysWhatCannotBe) {
  const auto refusal = [](const JobSpec& job) {
    const absl::Status status = PlanText(job).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(Cut(5, 1)), HasSubstr("parallelism.tensor: 5 ranks"));
  EXPECT_THAT(refusal(Cut(1, 1000)), HasSubstr("parallelism.pipeline: "));
  JobSpec synthetic;
  synthetic.mutable_model()->set_architecture("synthetic");
  synthetic.mutable_model()->set_units(2);
  synthetic.mutable_model()->add_forward_us(10);
  synthetic.mutable_model()->add_parameter_bytes(400);
  EXPECT_EQ(refusal(synthetic),
            "model.architecture: a synthetic model has no text");
  JobSpec graph;
  *graph.mutable_model() = SkipModel({});
  EXPECT_THAT(refusal(graph), HasSubstr("model.graph: text is generated by"));
  EXPECT_THAT(refusal(JobSpec()), HasSubstr("model."));
}

TEST(PlanText, WhoSharesMemoryUsesIt) {
  std::vector<WorkerDescription> workers(4);
  for (int rank = 0; rank < 4; ++rank) {
    workers[rank].set_memory_domain(rank < 2 ? "a" : "b");
  }
  TextPlan plan = PlanOf(Cut(2, 2));
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
  EXPECT_EQ(CarrierOf(plan.groups(0), 0).backend(), "gloo");
  EXPECT_EQ(CarrierOf(plan.groups(1), 0).backend(), "shared_memory");
  EXPECT_EQ(CarrierOf(plan.groups(1), 1).backend(), "shared_memory");
}

}  // namespace
}  // namespace troupe
