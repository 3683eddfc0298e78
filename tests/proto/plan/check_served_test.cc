// Plans with parameter servers, broken in the ways in which these can be: every
// fault is found, and named.
#include "proto/plan/check_served.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "proto/plan/find_program.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr int kReplicas = 0;  // roles
constexpr int kServers = 1;

JobSpec ServedJob() {
  JobSpec job = ExampleJob({.data = 4, .micro_batches = 2});
  job.mutable_parallelism()->set_servers(2);
  job.mutable_checkpoint()->set_directory("there");
  return job;
}

Program& Train(Plan& plan, int role) {
  return *FindProgram(*plan.mutable_roles(role), Program::TRAIN);
}

int First(const Program& program, Instruction::Kind kind, int unit) {
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    if (instruction.kind() == kind && instruction.unit() == unit) return i;
  }
  ADD_FAILURE() << "no " << Instruction::Kind_Name(kind);
  return 0;
}

Instruction& FirstOf(Plan& plan, int role, Instruction::Kind kind, int unit) {
  Program& program = Train(plan, role);
  return *program.mutable_instructions(First(program, kind, unit));
}

void RemoveFirst(Plan& plan, int role, Instruction::Kind kind, int unit) {
  Remove(Train(plan, role), First(Train(plan, role), kind, unit));
}

Placement& PlacementOf(Plan& plan, int role, int unit) {
  for (Placement& placement : *plan.mutable_roles(role)->mutable_placements()) {
    if (placement.unit() == unit) return placement;
  }
  ADD_FAILURE() << "no placement of unit " << unit;
  return *plan.mutable_roles(role)->mutable_placements(0);
}

int GroupNamed(const Plan& plan, const std::string& name) {
  for (int g = 0; g < plan.groups_size(); ++g) {
    if (plan.groups(g).name() == name) return g;
  }
  ADD_FAILURE() << "no group " << name;
  return 0;
}

void SetDealt(Placement& placement, int group) {
  for (Placement::Part& part : *placement.mutable_parts()) {
    part.set_dealt(group);
  }
}

void ClearDealt(Placement& placement) {
  for (Placement::Part& part : *placement.mutable_parts()) part.clear_dealt();
}

struct ServedFault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};

const ServedFault kServedFaults[] = {
    {"weights that nobody pulls",
     [](Plan& p) {
       for (const int role : {kReplicas, kServers}) {
         RemoveFirst(p, role, Instruction::PULL, 1);
       }
     },
     "the parameters of unit 1 are of an earlier step: no PULL"},
    {"weights that no server gives",
     [](Plan& p) { RemoveFirst(p, kServers, Instruction::PULL, 1); },
     "of group data-parameters is D u1"},
    {"gradients that nobody pushes",
     [](Plan& p) {
       RemoveFirst(p, kReplicas, Instruction::PUSH, 1);
       RemoveFirst(p, kServers, Instruction::PUSH, 1);
     },
     "gradients of unit 1 are not pushed"},
    {"gradients that servers do not take",
     [](Plan& p) { RemoveFirst(p, kServers, Instruction::PUSH, 1); },
     "the gradients of unit 1 are not pushed yet"},
    {"pushed twice",
     [](Plan& p) {
       for (const int role : {kReplicas, kServers}) {
         const Instruction again = FirstOf(p, role, Instruction::PUSH, 1);
         FirstOf(p, role, Instruction::PUSH, 0) = again;
       }
     },
     "they were pushed before"},
    {"pushed before the last addend",
     [](Plan& p) {
       Instruction& push = FirstOf(p, kReplicas, Instruction::PUSH, 2);
       Instruction& adds =
           FirstOf(p, kReplicas, Instruction::BACKWARD_WEIGHT, 2);
       push.Swap(&adds);
       push.mutable_after()->Swap(adds.mutable_after());
     },
     "nothing was added to these gradients"},
    {"pulled after the step",
     [](Plan& p) {
       const Instruction again = FirstOf(p, kServers, Instruction::PULL, 1);
       *Train(p, kServers).add_instructions() = again;
     },
     "gives parameters that its STEP has changed"},
    {"replicas that step",
     [](Plan& p) {
       Instruction step = FirstOf(p, kServers, Instruction::STEP, 1);
       step.clear_operands();
       step.clear_after();
       *Train(p, kReplicas).add_instructions() = step;
     },
     "STEP of unit 1 is there 1 times"},
    {"servers that do not step",
     [](Plan& p) { RemoveFirst(p, kServers, Instruction::STEP, 1); },
     "STEP of unit 1 is missing"},
    {"replicas that save",
     [](Plan& p) {
       Instruction saves =
           FindProgram(p.roles(kServers), Program::CHECKPOINT)->instructions(0);
       saves.clear_operands();
       saves.clear_after();
       *FindProgram(*p.mutable_roles(kReplicas), Program::CHECKPOINT)
            ->add_instructions() = saves;
     },
     "is there 1 times"},
    {"a unit that rests on replicas, too",
     [](Plan& p) {
       SetDealt(PlacementOf(p, kReplicas, 1), GroupNamed(p, "data"));
     },
     "GRAD_NORM of unit 1 is missing"},
    {"a unit that is not served",
     [](Plan& p) {
       for (const int role : {kReplicas, kServers}) {
         PlacementOf(p, role, 1).clear_served();
         ClearDealt(PlacementOf(p, role, 1));
       }
     },
     "part 0 of unit 1 is on ranks"},
    {"servers that there are not",
     [](Plan& p) {
       PlacementOf(p, kServers, 1).mutable_served()->set_servers(99);
     },
     "in groups that its ranks are in"},
    {"too little room for what replicas push",
     [](Plan& p) {
       for (Buffer& buffer : *Train(p, kServers).mutable_buffers()) {
         if (buffer.kind() != Buffer::PUSHED_GRADIENTS) continue;
         buffer.set_bytes(buffer.bytes() / 4);
       }
     },
     "has no room for what replicas push"},
    {"pushed from elsewhere",
     [](Plan& p) {
       Instruction& push = FirstOf(p, kReplicas, Instruction::PUSH, 1);
       push.mutable_operands(0)->set_buffer(
           FirstOf(p, kReplicas, Instruction::PUSH, 2).operands(0).buffer());
     },
     "does not push its unit's gradients"},
    {"pulled into a part",
     [](Plan& p) {
       FirstOf(p, kReplicas, Instruction::PULL, 1)
           .mutable_operands(0)
           ->set_bytes(64);
     },
     "does not get its unit's parameters"},
    {"servers that have micro-batches",
     [](Plan& p) {
       auto& counts = *p.mutable_derived()->mutable_replica_micro_batches();
       counts[0] -= 1;
       counts[5] += 1;
     },
     "and of 2 servers, 0 each"},
};

// What other checks say before this one is asked.
const ServedFault kMemberFaults[] = {
    {"a unit that rests on replicas, too",
     [](Plan& p) {
       SetDealt(PlacementOf(p, kReplicas, 1), GroupNamed(p, "data"));
     },
     "rests on a replica, too"},
    {"a unit that is not served",
     [](Plan& p) { PlacementOf(p, kReplicas, 1).clear_served(); },
     "unit 1 is not served, and the job has servers"},
    {"served by all",
     [](Plan& p) {
       PlacementOf(p, kReplicas, 1)
           .mutable_served()
           ->set_servers(GroupNamed(p, "data"));
     },
     "group data has 6 servers of 2"},
    {"pushed to servers alone",
     [](Plan& p) {
       PlacementOf(p, kServers, 1)
           .mutable_served()
           ->set_group(GroupNamed(p, "data 4,5"));
     },
     "group data 4,5 is not of all of its replicas and servers"},
    {"a server that computes",
     [](Plan& p) {
       Instruction pass = FirstOf(p, kReplicas, Instruction::FORWARD, 1);
       pass.clear_operands();
       *Train(p, kServers).add_instructions() = pass;
     },
     "is of a server, which computes none"},
    {"a replica that steps",
     [](Plan& p) {
       *Train(p, kReplicas).add_instructions() =
           FirstOf(p, kServers, Instruction::STEP, 1);
     },
     "a replica keeps no state of unit 1"},
    {"a server with micro-batches",
     [](Plan& p) {
       p.mutable_derived()->mutable_replica_micro_batches()->Set(4, 1);
     },
     "rank 4 serves it, but has micro-batches to compute"},
};

TEST(CheckServed, FindsFaultsOfMembers) {
  for (const ServedFault& fault : kMemberFaults) {
    Plan plan = ExamplePlan(ServedJob());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckServed(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

TEST(CheckServed, FindsEveryFault) {
  EXPECT_EQ(CheckPrograms(ExamplePlan(ServedJob())), absl::OkStatus());
  for (const ServedFault& fault : kServedFaults) {
    Plan plan = ExamplePlan(ServedJob());
    fault.plant(plan);
    const absl::Status status = CheckPrograms(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()).substr(0, 400),
                HasSubstr(fault.message))
        << fault.name;
  }
}

TEST(CheckServed, WithoutServersNothingIsServed) {
  JobSpec job = ExampleJob({.data = 2});
  EXPECT_EQ(CheckServed(ExamplePlan(job)), absl::OkStatus());
  Plan plan = ExamplePlan(ServedJob());
  plan.mutable_job()->mutable_parallelism()->set_servers(0);
  EXPECT_THAT(std::string(CheckServed(plan).message()),
              HasSubstr("is served, and the job has no servers"));
}

// What replicas and servers do in a step.
TEST(CheckServed, ProgramsPullStepAndPush) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 1, .blocks = 1});
  job.mutable_parallelism()->set_servers(1);
  job.mutable_training()->set_validate_every(0);
  const Plan plan = ExamplePlan(job);
  EXPECT_EQ(ProgramWords(plan, 0, Program::TRAIN),
            "L m0 | D u0 g2 | F u0 m0 | D u1 g2 | F u1 m0 | D u2 g2 | F u2 m0 "
            "| I u2 m0 | W u2 m0 | U u2 g0 | I u1 m0 | W u1 m0 | U u1 g0 | "
            "W u0 m0 | U u0 g0 | A g0");
  EXPECT_EQ(ProgramWords(plan, 2, Program::TRAIN),
            "D u0 g2 | D u1 g2 | D u2 g2 | U u2 g0 | U u1 g0 | U u0 g0 | N u2 "
            "| N u1 | N u0 | A g0 | O u0 | O u1 | O u2");
}

}  // namespace
}  // namespace troupe
