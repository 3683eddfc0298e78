// Plans of which each step is one replica's, broken in the ways in which these
// can be: every fault is found, and named.
#include "proto/plan/check_turns.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "proto/plan/find_program.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr int kOfReplicas = 0;  // roles
constexpr int kOfServers = 1;

JobSpec TurnsJob() {
  JobSpec job = ExampleJob({.data = 3, .micro_batches = 3});
  job.mutable_training()->set_gradient_clipping(1);
  job.mutable_training()->set_validate_every(5);
  job.mutable_data()->set_validation_fraction(0.05);
  job.mutable_parallelism()->set_servers(2);
  job.mutable_servers()->set_mode("async");
  job.mutable_checkpoint()->set_directory("there");
  return job;
}

Program& TrainOf(Plan& plan, int role) {
  return *FindProgram(*plan.mutable_roles(role), Program::TRAIN);
}

int FirstOfKind(const Program& program, Instruction::Kind kind) {
  for (int i = 0; i < program.instructions_size(); ++i) {
    if (program.instructions(i).kind() == kind) return i;
  }
  ADD_FAILURE() << "no " << Instruction::Kind_Name(kind);
  return 0;
}

Instruction& OfKind(Plan& plan, int role, Instruction::Kind kind) {
  Program& program = TrainOf(plan, role);
  return *program.mutable_instructions(FirstOfKind(program, kind));
}

void RemoveKind(Plan& plan, int role, Instruction::Kind kind) {
  Program& program = TrainOf(plan, role);
  Remove(program, FirstOfKind(program, kind));
}

struct TurnsFault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};

const TurnsFault kTurnsFaults[] = {
    {"a step that nobody claims",
     [](Plan& p) { RemoveKind(p, kOfReplicas, Instruction::CLAIM); },
     "the step is not claimed yet"},
    {"gradients that are not delivered",
     [](Plan& p) { RemoveKind(p, kOfReplicas, Instruction::DELIVER); },
     "DELIVER is missing"},
    {"a server that steps on its own",
     [](Plan& p) { RemoveKind(p, kOfServers, Instruction::ADMIT); },
     "the gradients of the step are not there yet"},
    {"delivered twice",
     [](Plan& p) {
       *TrainOf(p, kOfReplicas).add_instructions() =
           OfKind(p, kOfReplicas, Instruction::DELIVER);
     },
     "is there twice"},
    {"a pass behind the delivery",
     [](Plan& p) {
       *TrainOf(p, kOfReplicas).add_instructions() =
           OfKind(p, kOfReplicas, Instruction::BACKWARD_WEIGHT);
     },
     "the gradients of the step are delivered"},
    {"data that does not wait for the claim",
     [](Plan& p) {
       Instruction& load = OfKind(p, kOfReplicas, Instruction::LOAD_BATCH);
       load.set_lane(OfKind(p, kOfReplicas, Instruction::DELIVER).lane());
       load.clear_after();
     },
     "does not wait until the step is claimed"},
    {"a unit that is not pulled",
     [](Plan& p) {
       auto& operands =
           *OfKind(p, kOfReplicas, Instruction::CLAIM).mutable_operands();
       operands.RemoveLast();
     },
     "does not get the parameters of unit"},
    {"a unit that is not pushed",
     [](Plan& p) {
       auto& operands =
           *OfKind(p, kOfReplicas, Instruction::DELIVER).mutable_operands();
       operands.RemoveLast();
     },
     "does not give the gradients of unit"},
    {"a unit that no server takes",
     [](Plan& p) {
       auto& operands =
           *OfKind(p, kOfServers, Instruction::ADMIT).mutable_operands();
       operands.RemoveLast();
     },
     "does not get the gradients of unit"},
    {"a unit of which a part is pulled",
     [](Plan& p) {
       Instruction& claim = OfKind(p, kOfReplicas, Instruction::CLAIM);
       claim.mutable_operands(claim.operands_size() - 1)->set_bytes(64);
     },
     "does not get the parameters of unit"},
    {"a replica that admits",
     [](Plan& p) {
       OfKind(p, kOfReplicas, Instruction::DELIVER)
           .set_kind(Instruction::ADMIT);
     },
     "is a server's"},
    {"a replica that steps",
     [](Plan& p) {
       *TrainOf(p, kOfReplicas).add_instructions() =
           OfKind(p, kOfServers, Instruction::STEP);
     },
     "a replica keeps no state"},
    {"a step in which all meet",
     [](Plan& p) {
       *TrainOf(p, kOfReplicas).add_instructions() =
           FindProgram(p.roles(kOfReplicas), Program::VALIDATE)
               ->instructions(0);
       Instruction& last =
           *TrainOf(p, kOfReplicas)
                .mutable_instructions(
                    TrainOf(p, kOfReplicas).instructions_size() - 1);
       last.set_kind(Instruction::PULL);
     },
     "waits for all replicas"},
    {"a validation that is claimed",
     [](Plan& p) {
       *FindProgram(*p.mutable_roles(kOfReplicas), Program::VALIDATE)
            ->add_instructions() = OfKind(p, kOfReplicas, Instruction::CLAIM);
     },
     "this is no step of one replica"},
    {"steps that are not said to be one replica's",
     [](Plan& p) { p.mutable_derived()->clear_takes_turns(); },
     "this is no step of one replica"},
    {"gradients that are not said to be late",
     [](Plan& p) { p.mutable_derived()->clear_delays_gradients(); },
     "gradients are not said to be delayed"},
    {"a replica with part of a step",
     [](Plan& p) {
       p.mutable_derived()->mutable_replica_micro_batches()->Set(1, 2);
     },
     "replica 1 computes 2 of its 9 micro-batches"},
    {"steps that are summed late",
     [](Plan& p) { p.mutable_derived()->set_report_lag(1); },
     "are summed 1 programs late"},
};

TEST(CheckTurns, FindsEveryFault) {
  ASSERT_EQ(CheckPrograms(ExamplePlan(TurnsJob())), absl::OkStatus());
  for (const TurnsFault& fault : kTurnsFaults) {
    Plan plan = ExamplePlan(TurnsJob());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckTurns(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
    EXPECT_FALSE(CheckPrograms(plan).ok()) << fault.name;
  }
}

// What replicas and servers do in a step.
TEST(CheckTurns, ProgramsClaimDeliverAndAdmit) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 1, .blocks = 1});
  job.mutable_training()->set_global_batch_size(
      job.training().micro_batch_size());
  job.mutable_parallelism()->set_servers(1);
  job.mutable_servers()->set_mode("bounded");
  job.mutable_training()->set_validate_every(0);
  const Plan plan = ExamplePlan(job);
  EXPECT_EQ(ProgramWords(plan, 0, Program::TRAIN),
            "B g0 | L m0 | F u0 m0 | F u1 m0 | F u2 m0 | I u2 m0 | W u2 m0 | "
            "I u1 m0 | W u1 m0 | W u0 m0 | Z g0");
  EXPECT_EQ(ProgramWords(plan, 2, Program::TRAIN), "a g0 | O u0 | O u1 | O u2");
  EXPECT_EQ(plan.job().servers().staleness(), 4);
}

}  // namespace
}  // namespace troupe
