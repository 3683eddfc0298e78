// Plans whose ranks share the experts of layers, broken in the ways in which
// rows can go astray: every fault is found, and named.
#include "proto/plan/check_experts.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_layouts.h"
#include "proto/plan/check_program.h"
#include "tests/proto/plan/planted.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Two replicas of two ranks, each with two of four experts.
JobSpec ExpertsJob() {
  JobSpec job = ExampleJob({.data = 4});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("mixtral");
  model.set_intermediate_size(12);
  model.set_num_experts(4);
  job.mutable_parallelism()->set_expert(2);
  return job;
}

// Of two replicas with two tensor-parallel ranks each, all four share them.
JobSpec FoldedJob() {
  JobSpec job = ExpertsJob();
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_data(2);
  parallelism.set_tensor(2);
  parallelism.set_sequence_parallel(true);
  parallelism.set_expert(4);
  return job;
}

// To the experts: rows, then gates; then back.
Op& Round(Plan& plan, int n) { return NthOp(plan, Op::EXCHANGE, 1 + n); }

const PlantedFault kFaults[] = {
    {"a round that takes the rows of no rank's offsets",
     [](Plan& p) {
       const int own = NthOp(p, Op::DISPATCH, 0).outputs(4).tensor();
       InputOf(Round(p, 0), "offsets").set_tensor(own);
     },
     "EXCHANGE reads offsets of dispatched rows of op"},
    {"rows that are exchanged twice",
     [](Plan& p) {
       const int received = Round(p, 0).outputs(0).tensor();
       InputOf(Round(p, 1), "x").set_tensor(received);
     },
     "EXCHANGE reads received rows of op"},
    {"rows of another round than their gates",
     [](Plan& p) { Round(p, 1).mutable_round()->set_number(1); },
     "REGROUP reads received rows of op"},
    {"ranks that are in different rounds",
     [](Plan& p) { NthOp(p, Op::UNGROUP, 0).mutable_round()->set_number(1); },
     "UNGROUP reads rows by expert of op"},
    {"the gates of other tokens",
     [](Plan& p) {
       const int gates = NthOp(p, Op::DISPATCH, 0).outputs(1).tensor();
       InputOf(NthOp(p, Op::SWIGLU, 0), "weights").set_tensor(gates);
     },
     "SWIGLU takes rows by expert of op"},
    {"counts of other rows",
     [](Plan& p) {
       const int own = NthOp(p, Op::DISPATCH, 0).outputs(4).tensor();
       InputOf(NthOp(p, Op::GROUPED_LINEAR, 0), "offsets").set_tensor(own);
     },
     "GROUPED_LINEAR reads rows by expert of op"},
    {"other experts than the rank has",
     [](Plan& p) {
       Op& regroup = NthOp(p, Op::REGROUP, 0);
       TensorOf(p, regroup.outputs(2))
           .mutable_dims(0)
           ->mutable_sections(0)
           ->set_count(5);
     },
     "GROUPED_LINEAR has rows for 4 experts, and "},
    {"rows that are combined by expert",
     [](Plan& p) {
       const int by_expert = NthOp(p, Op::UNGROUP, 0).inputs(0).tensor();
       InputOf(NthOp(p, Op::COMBINE, 0), "x").set_tensor(by_expert);
     },
     "COMBINE combines rows by expert of op"},
    {"rows that never come back",
     [](Plan& p) {
       const int dispatched = NthOp(p, Op::DISPATCH, 0).outputs(0).tensor();
       InputOf(Round(p, 2), "x").set_tensor(dispatched);
     },
     "EXCHANGE reads rows as dispatched of op"},
    {"rounds too few for what one rank may receive",
     [](Plan& p) {
       Op& back = Round(p, 2);
       TensorOf(p, InputOf(back, "x"))
           .mutable_dims(2)
           ->mutable_sections(0)
           ->set_count(3);
     },
     "COMBINE combines what 1 rounds of 48 rows have brought, and the 2 ranks "
     "may send 64 to one"},
    {"a round that is brought back into another",
     [](Plan& p) {
       Op& back = Round(p, 2);
       Op::Operand& into = *back.add_inputs();
       into.set_name("into");
       into.set_tensor(NthOp(p, Op::DISPATCH, 0).outputs(0).tensor());
     },
     "EXCHANGE adds round 0 to rows as dispatched of op"},
    {"rows that are combined twice",
     [](Plan& p) {
       UnitTable& table = TableOf(p);
       *table.add_ops() = NthOp(p, Op::COMBINE, 0);
     },
     "once more"},
    {"rows that nobody combines",
     [](Plan& p) {
       TableOf(p).mutable_ops()->DeleteSubrange(Nth(p, Op::COMBINE, 0), 1);
     },
     "DISPATCH has rows that are never combined"},
    {"gates that are no router's",
     [](Plan& p) {
       Op& dispatch = NthOp(p, Op::DISPATCH, 0);
       InputOf(dispatch, "gates")
           .set_tensor(InputOf(dispatch, "choices").tensor());
     },
     "DISPATCH has the gates of other choices"},
    {"gates of another router",
     [](Plan& p) {
       // Whose choices are other tensors.
       Op& route = NthOp(p, Op::ROUTE, 0);
       const int choices = route.outputs(0).tensor();
       *TableOf(p).add_tensors() = TableOf(p).tensors(choices);
       const int others = TableOf(p).tensors_size() - 1;
       InputOf(NthOp(p, Op::DISPATCH, 0), "choices").set_tensor(others);
     },
     "DISPATCH has the gates of other choices"},
};

TEST(CheckExperts, NamesTheFault) {
  EXPECT_EQ(CheckPrograms(ExamplePlan(ExpertsJob())), absl::OkStatus());
  for (const PlantedFault& fault : kFaults) {
    Plan plan = ExamplePlan(ExpertsJob());
    ASSERT_EQ(CheckExperts(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckExperts(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

// The exchange of a folded plan that gathers offsets.
Op& Gather(Plan& plan) {
  for (UnitTable& table : *plan.mutable_tables()) {
    for (Op& op : *table.mutable_ops()) {
      if (op.exchange().axes_size() > 1 && !op.has_round()) return op;
    }
  }
  ADD_FAILURE() << "no offsets are gathered along two axes";
  return *plan.mutable_tables(0)->mutable_ops(0);
}
// Rows, gates, back.
Op& FoldedRound(Plan& plan, int n) {
  for (UnitTable& table : *plan.mutable_tables()) {
    for (Op& op : *table.mutable_ops()) {
      if (op.kind() == Op::EXCHANGE && op.has_round() && n-- == 0) return op;
    }
  }
  ADD_FAILURE() << "no such exchange";
  return *plan.mutable_tables(0)->mutable_ops(0);
}
Dim::Section& ExpertsOfFirstWeight(Plan& plan) {
  for (Unit& unit : *plan.mutable_units()) {
    for (Parameter& parameter : *unit.mutable_parameters()) {
      Dim::Section& first = *parameter.mutable_dims(0)->mutable_sections(0);
      if (first.kind() == Dim::EXPERT_WEIGHTS) return first;
    }
  }
  ADD_FAILURE() << "no experts";
  return *plan.mutable_units(0)
              ->mutable_parameters(0)
              ->mutable_dims(0)
              ->mutable_sections(0);
}

const PlantedFault kFoldedFaults[] = {
    {"ranks whose experts are not in the order of their group",
     [](Plan& p) {
       ExpertsOfFirstWeight(p).mutable_cuts()->SwapElements(0, 1);
     },
     "are cut by tensor x expert"},
    {"experts that fewer ranks share than rows go to",
     [](Plan& p) {
       ExpertsOfFirstWeight(p).mutable_cuts(1)->set_axis("context");
     },
     "are cut by expert x context"},
    {"offsets of the ranks of one axis only",
     [](Plan& p) {
       Gather(p).mutable_exchange()->mutable_axes()->RemoveLast();
     },
     "is along expert x tensor, and its offsets are not"},
    {"offsets in another order than the ranks of the mesh",
     [](Plan& p) {
       Gather(p).mutable_exchange()->mutable_axes()->SwapElements(0, 1);
     },
     "is along tensor x expert, which is not their order in the mesh"},
    {"rows that go to the ranks of one axis only",
     [](Plan& p) {
       FoldedRound(p, 0).mutable_exchange()->mutable_axes()->RemoveLast();
     },
     "is among ranks along expert, in a round along expert x tensor"},
    {"rows for fewer ranks than there are",
     [](Plan& p) { FoldedRound(p, 0).mutable_round()->set_ranks(2); },
     "is of 2 ranks, and expert x tensor has 4"},
};

TEST(CheckExperts, NamesTheFaultOfRanksOfSeveralAxes) {
  EXPECT_EQ(CheckPrograms(ExamplePlan(FoldedJob())), absl::OkStatus());
  for (const PlantedFault& fault : kFoldedFaults) {
    Plan plan = ExamplePlan(FoldedJob());
    ASSERT_EQ(CheckExperts(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckExperts(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

// Two ranks have half of each sequence's positions.
JobSpec RoomJob() {
  JobSpec job = ExpertsJob();
  job.mutable_model()->mutable_experts()->set_routing("capacity");
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_data(2);
  parallelism.set_context(2);
  return job;
}

Op& GatherOfCounts(Plan& plan) {
  const Op& room = NthOp(plan, Op::CAPACITY, 0);
  for (UnitTable& table : *plan.mutable_tables()) {
    for (Op& op : *table.mutable_ops()) {
      if (op.kind() == Op::EXCHANGE &&
          op.outputs(0).tensor() == room.inputs(2).tensor()) {
        return op;
      }
    }
  }
  ADD_FAILURE() << "no counts are gathered";
  return *plan.mutable_tables(0)->mutable_ops(0);
}

const PlantedFault kRoomFaults[] = {
    {"room that each rank gives out by itself",
     [](Plan& p) { NthOp(p, Op::CAPACITY, 0).mutable_inputs()->RemoveLast(); },
     "CAPACITY gives out room with counts of ranks along no axis, and "
     "sequences are cut by context"},
    {"counts of ranks that have other sequences",
     [](Plan& p) {
       GatherOfCounts(p).mutable_exchange()->set_axes(0, "expert");
     },
     "CAPACITY gives out room with counts of ranks along expert"},
    {"counts of this rank's tokens only",
     [](Plan& p) {
       const int own = GatherOfCounts(p).inputs(0).tensor();
       InputOf(NthOp(p, Op::CAPACITY, 0), "counts").set_tensor(own);
     },
     "CAPACITY gives out room with counts of ranks along no axis"},
    {"counts of something else",
     [](Plan& p) {
       const int gates = InputOf(NthOp(p, Op::CAPACITY, 0), "gates").tensor();
       InputOf(NthOp(p, Op::ROUTER_LOAD, 0), "choices").set_tensor(gates);
     },
     "CAPACITY gives out room by the counts of other choices"},
    {"room for the gates of other choices",
     [](Plan& p) {
       Op& room = NthOp(p, Op::CAPACITY, 0);
       InputOf(room, "gates").set_tensor(InputOf(room, "choices").tensor());
     },
     "CAPACITY gives out room to the gates of other choices"},
    {"choices that keep their gates without room",
     [](Plan& p) {
       const int all = InputOf(NthOp(p, Op::CAPACITY, 0), "gates").tensor();
       InputOf(NthOp(p, Op::DISPATCH, 0), "gates").set_tensor(all);
     },
     "DISPATCH has gates from before room was given out"},
};

TEST(CheckExperts, NamesTheFaultOfRoom) {
  EXPECT_EQ(CheckPrograms(ExamplePlan(RoomJob())), absl::OkStatus());
  for (const PlantedFault& fault : kRoomFaults) {
    Plan plan = ExamplePlan(RoomJob());
    ASSERT_EQ(CheckExperts(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckExperts(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

const PlantedFault kLayoutFaults[] = {
    {"rows for as many ranks as there are not",
     [](Plan& p) { Round(p, 0).mutable_round()->set_ranks(3); },
     "among 3 ranks along expert"},
    {"gradients that do not come back",
     [](Plan& p) {
       Round(p, 0).mutable_exchange()->set_backward(COLLECTIVE_UNSPECIFIED);
     },
     "does ALL_TO_ALL and COLLECTIVE_UNSPECIFIED in backward among 2 ranks"},
    {"offsets that stay where they are",
     [](Plan& p) {
       NthOp(p, Op::EXCHANGE, 0)
           .mutable_exchange()
           ->set_forward(COLLECTIVE_UNSPECIFIED);
     },
     "does COLLECTIVE_UNSPECIFIED and COLLECTIVE_UNSPECIFIED in backward"},
};

TEST(CheckLayouts, NamesTheFaultOfExperts) {
  for (const PlantedFault& fault : kLayoutFaults) {
    Plan plan = ExamplePlan(ExpertsJob());
    ASSERT_EQ(CheckLayouts(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckLayouts(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

}  // namespace
}  // namespace troupe
