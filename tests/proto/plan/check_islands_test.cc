// Plans with islands, broken in the ways in which these can be: every fault is
// found, and named.
#include "proto/plan/check_islands.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "proto/plan/find_program.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "proto/plan/when.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobSpec IslandsJob() {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  job.mutable_training()->set_global_batch_size(16);
  job.mutable_parallelism()->set_islands(2);
  job.mutable_islands()->set_every(10);
  job.mutable_islands()->set_fragments(2);
  return job;
}

Program& Train(Plan& plan) {
  return *FindProgram(*plan.mutable_roles(0), Program::TRAIN);
}

int FirstIndex(Plan& plan, Instruction::Kind kind, int unit) {
  for (int i = 0; i < Train(plan).instructions_size(); ++i) {
    const Instruction& instruction = Train(plan).instructions(i);
    if (instruction.kind() == kind && instruction.unit() == unit) return i;
  }
  ADD_FAILURE() << "no " << Instruction::Kind_Name(kind);
  return 0;
}

Instruction& FirstOf(Plan& plan, Instruction::Kind kind, int unit) {
  return *Train(plan).mutable_instructions(FirstIndex(plan, kind, unit));
}

// In which islands agree, and in which one sums by itself.
Instruction& SumOfScalars(Plan& plan, bool agrees) {
  for (Instruction& instruction : *Train(plan).mutable_instructions()) {
    if (instruction.kind() == Instruction::REDUCE_SCALARS &&
        instruction.has_when() == agrees) {
      return instruction;
    }
  }
  ADD_FAILURE() << "no such sum";
  return *Train(plan).mutable_instructions(0);
}

int GroupWith(const Plan& plan, const std::string& name) {
  for (int g = 0; g < plan.groups_size(); ++g) {
    if (plan.groups(g).name() == name) return g;
  }
  ADD_FAILURE() << "no group " << name;
  return 0;
}

struct IslandsFault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};

const IslandsFault kFaults[] = {
    {"a mesh of fewer islands",
     [](Plan& p) {
       p.mutable_mesh()->mutable_axes(0)->set_name("archipelago");
     },
     "the job has 2 islands, and the mesh 1"},
    {"a mesh whose islands are not outermost",
     [](Plan& p) { p.mutable_mesh()->mutable_axes()->SwapElements(0, 1); },
     "not on its first axis"},
    {"a unit that is not exchanged",
     [](Plan& p) {
       Remove(Train(p), FirstIndex(p, Instruction::OUTER_STEP, 1));
     },
     "what is learned of unit 1 is not exchanged"},
    {"a change that is not summed",
     [](Plan& p) {
       Remove(Train(p), FirstIndex(p, Instruction::OUTER_REDUCE, 1));
     },
     "comes where OUTER_REDUCE of unit 1 should"},
    {"a step of what nobody took",
     [](Plan& p) {
       Remove(Train(p), FirstIndex(p, Instruction::OUTER_GRADIENT, 1));
     },
     "comes where OUTER_GRADIENT of unit 1 should"},
    {"a change from before the step",
     [](Plan& p) {
       FirstOf(p, Instruction::OUTER_GRADIENT, 1)
           .Swap(&FirstOf(p, Instruction::STEP, 1));
     },
     "comes where STEP of unit 1 should"},
    {"an exchange in every step",
     [](Plan& p) { FirstOf(p, Instruction::OUTER_REDUCE, 0).clear_when(); },
     "runs in every step, want in steps 0 after a multiple of 10, and in the "
     "last one"},
    {"an exchange in the steps of another fragment",
     [](Plan& p) {
       FirstOf(p, Instruction::OUTER_STEP, 0).mutable_when()->set_offset(5);
     },
     "runs in steps 5 after a multiple of 10"},
    {"a last step without an exchange",
     [](Plan& p) {
       FirstOf(p, Instruction::OUTER_STEP, 0).mutable_when()->set_last(false);
     },
     "and in the last one"},
    {"an exchange within an island",
     [](Plan& p) {
       FirstOf(p, Instruction::OUTER_REDUCE, 2).set_group(GroupWith(p, "data"));
     },
     "group data is not of the ranks at one place of all islands"},
    {"an exchange with everybody",
     [](Plan& p) {
       FirstOf(p, Instruction::OUTER_REDUCE, 2)
           .set_group(GroupWith(p, "world"));
     },
     "group world is not of the ranks at one place of all islands"},
    {"gradients that islands sum",
     [](Plan& p) {
       FirstOf(p, Instruction::REDUCE_GRADS, 0)
           .set_group(GroupWith(p, "world"));
     },
     "group world is of several islands, which train by themselves"},
    {"a part that islands sum",
     [](Plan& p) {
       p.mutable_roles(0)->mutable_placements(1)->mutable_parts(0)->set_summed(
           GroupWith(p, "world"));
     },
     "unit 1 is shared over group world, which is of several islands"},
    {"scalars that islands sum",
     [](Plan& p) { SumOfScalars(p, false).set_group(GroupWith(p, "world")); },
     "group world is of several islands"},
    {"islands that never agree",
     [](Plan& p) { SumOfScalars(p, true).clear_when(); },
     "group world is of several islands"},
    {"islands that agree with themselves",
     [](Plan& p) { SumOfScalars(p, true).set_group(GroupWith(p, "data")); },
     "group data is not of all ranks of all islands"},
    {"islands that agree when they do not exchange",
     [](Plan& p) { SumOfScalars(p, true).mutable_when()->set_every(7); },
     "runs in steps 0 after a multiple of 7"},
    {"a step that is left out",
     [](Plan& p) {
       FirstOf(p, Instruction::STEP, 1).mutable_when()->set_every(2);
     },
     "belongs to every step"},
    {"a change of other bytes",
     [](Plan& p) {
       const Instruction& takes = FirstOf(p, Instruction::OUTER_GRADIENT, 1);
       for (const Instruction::Operand& operand : takes.operands()) {
         if (operand.part() != Instruction::CHANGE) continue;
         Buffer& buffer = *Train(p).mutable_buffers(operand.buffer());
         buffer.set_bytes(buffer.bytes() - 64);
       }
     },
     "does not use its unit's weights, outer states and change"},
    {"a step that leaves the weights alone",
     [](Plan& p) {
       for (Instruction::Operand& operand :
            *FirstOf(p, Instruction::OUTER_STEP, 1).mutable_operands()) {
         if (operand.part() == Instruction::WEIGHTS) {
           operand.set_access(Instruction::READ);
         }
       }
     },
     "does not use its unit's weights, outer states and change"},
};

TEST(CheckIslands, FindsEveryFault) {
  EXPECT_EQ(CheckPrograms(ExamplePlan(IslandsJob())), absl::OkStatus());
  for (const IslandsFault& fault : kFaults) {
    Plan plan = ExamplePlan(IslandsJob());
    fault.plant(plan);
    const absl::Status status = CheckIslands(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message))
        << fault.name;
    EXPECT_FALSE(CheckPrograms(plan).ok()) << fault.name;
  }
}

// Hidden behind a step, an exchange begins before it.
TEST(CheckIslands, FindsFaultsOfWhatOverlaps) {
  JobSpec job = IslandsJob();
  job.mutable_islands()->set_overlap(1);
  EXPECT_EQ(CheckPrograms(ExamplePlan(job)), absl::OkStatus());
  Plan plan = ExamplePlan(job);
  EXPECT_EQ(FirstOf(plan, Instruction::OUTER_REDUCE, 1).when().offset(), 6);
  FirstOf(plan, Instruction::OUTER_STEP, 1)
      .Swap(&FirstOf(plan, Instruction::STEP, 1));
  EXPECT_THAT(std::string(CheckIslands(plan).message()),
              HasSubstr("comes where STEP of unit 1 should"));
  plan = ExamplePlan(job);
  Program& train = Train(plan);
  for (int i = train.instructions_size() - 1; i >= 0; --i) {
    if (train.instructions(i).kind() != Instruction::OUTER_STEP) continue;
    Remove(train, i);
    break;
  }
  EXPECT_THAT(std::string(CheckIslands(plan).message()),
              HasSubstr("is not exchanged: OUTER_STEP is missing"));
}

TEST(CheckIslands, OneIslandExchangesNothing) {
  Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  EXPECT_EQ(CheckIslands(plan), absl::OkStatus());
  Instruction& outer = *Train(plan).add_instructions();
  outer.set_kind(Instruction::OUTER_STEP);
  EXPECT_THAT(std::string(CheckIslands(plan).message()),
              HasSubstr("the job has one island"));
}

TEST(When, IsASetOfSteps) {
  Instruction instruction;
  EXPECT_TRUE(RunsIn(instruction, 7, 20));
  *instruction.mutable_when() = WhenExchanged(IslandsJob().islands(), 1);
  for (int64_t step = 1; step <= 20; ++step) {
    EXPECT_EQ(RunsIn(instruction, step, 20),
              step == 5 || step == 15 || step == 20)
        << step;
  }
}

// Pipelines within islands: a rank's pipeline is of its island.
TEST(Mesh, PipelinesAreOfIslands) {
  Mesh mesh;
  for (const auto& [name, size] : {std::make_pair(kIslandAxis, 2),
                                   {kPipelineAxis, 3},
                                   {kReplicaAxis, 2}}) {
    Axis& axis = *mesh.add_axes();
    axis.set_name(name);
    axis.set_size(size);
  }
  EXPECT_EQ(PipelineCount(mesh), 4);
  for (int rank = 0; rank < 12; ++rank) {
    const int place = CoordinateOn(mesh, kPipelineAxis, rank);
    EXPECT_EQ(PipelineOf(mesh, rank),
              2 * CoordinateOn(mesh, kIslandAxis, rank) +
                  CoordinateOn(mesh, kReplicaAxis, rank));
    EXPECT_EQ(RankOfPipeline(mesh, PipelineOf(mesh, rank), place), rank);
  }
}

// Islands are up to a round apart, and each rank has the copies of two steps:
// one of these is of all ranks.
TEST(CheckIslands, CopiesAreOfStepsInWhichIslandsAgree) {
  Plan plan = ExamplePlan(IslandsJob());
  const auto kept = [&plan] {
    std::vector<int64_t> steps;
    for (int64_t step = 1; step <= 60; ++step) {
      if (KeepsCopiesAfter(plan, step)) steps.push_back(step);
    }
    return steps;
  };
  EXPECT_THAT(kept(), ElementsAre(10, 20, 30, 40, 50, 60));
  plan.mutable_prediction()->set_keep_every(25);
  EXPECT_THAT(kept(), ElementsAre(20, 40, 60));
  plan.mutable_job()->mutable_islands()->set_overlap(1);
  EXPECT_THAT(kept(), ElementsAre(1, 21, 41));
  plan.mutable_job()->mutable_parallelism()->clear_islands();
  EXPECT_THAT(kept(), ElementsAre(25, 50));
}

// What an island does in a step.
TEST(CheckIslands, ProgramsExchangeBehindTheirSteps) {
  JobSpec job = ExampleJob({.micro_batches = 1, .blocks = 1});
  job.mutable_training()->set_global_batch_size(4);
  job.mutable_parallelism()->set_islands(2);
  job.mutable_islands()->set_every(10);
  EXPECT_EQ(ProgramWords(ExamplePlan(job), 0, Program::TRAIN),
            "L m0 | F u0 m0 | F u1 m0 | F u2 m0 | I u2 m0 | W u2 m0 | I u1 m0 "
            "| W u1 m0 | W u0 m0 | N u2 | N u1 | N u0 | A g0 %10:0:last | O u0 "
            "| O u1 | O u2 | J u0 %10:0:last | Y u0 g1 %10:0:last | J u1 "
            "%10:0:last | Y u1 g1 %10:0:last | J u2 %10:0:last | Y u2 g1 "
            "%10:0:last | Q u0 %10:0:last | Q u1 %10:0:last | Q u2 "
            "%10:0:last");
}

}  // namespace
}  // namespace troupe
