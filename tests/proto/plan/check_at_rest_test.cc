// Plans whose units rest in slices, broken in the ways in which these can be:
// every fault is found, and named.
#include "proto/plan/check_at_rest.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "proto/plan/find_program.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

JobSpec ZeroJob(int zero) {
  JobSpec job = ExampleJob({.data = 4, .micro_batches = 2});
  job.mutable_parallelism()->set_zero(zero);
  job.mutable_parallelism()->set_zero_size(2);
  return job;
}

// The program that all ranks have.
Program& Train(Plan& plan) {
  return *FindProgram(*plan.mutable_roles(0), Program::TRAIN);
}

int First(const Program& program, Instruction::Kind kind, int unit) {
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    if (instruction.kind() == kind && instruction.unit() == unit) return i;
  }
  ADD_FAILURE() << "no " << Instruction::Kind_Name(kind);
  return 0;
}

Instruction& FirstOf(Plan& plan, Instruction::Kind kind, int unit) {
  Program& program = Train(plan);
  return *program.mutable_instructions(First(program, kind, unit));
}

void RemoveFirst(Plan& plan, Instruction::Kind kind, int unit) {
  Remove(Train(plan), First(Train(plan), kind, unit));
}

Buffer& BufferOf(Plan& plan, Buffer::Kind kind, int unit) {
  for (Buffer& buffer : *Train(plan).mutable_buffers()) {
    if (buffer.kind() == kind && buffer.unit() == unit) return buffer;
  }
  ADD_FAILURE() << "no " << Buffer::Kind_Name(kind);
  return *Train(plan).mutable_buffers(0);
}

void SetOperand(Instruction& instruction, Instruction::Part part, int buffer) {
  for (Instruction::Operand& operand : *instruction.mutable_operands()) {
    if (operand.part() == part) operand.set_buffer(buffer);
  }
}

// Blocks whose attention is dealt over all four ranks. Their experts are dealt
// over two with `expert: 2`, over none with 4.
JobSpec ExpertsJob(int expert, int zero) {
  JobSpec job = ExampleJob({.data = 4, .micro_batches = 2});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("mixtral");
  model.set_intermediate_size(12);
  model.set_num_experts(4);
  job.mutable_parallelism()->set_expert(expert);
  job.mutable_parallelism()->set_zero(zero);
  return job;
}

void RemoveOfPart(Plan& plan, Instruction::Kind kind, int part) {
  Program& program = Train(plan);
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    if (instruction.kind() != kind || instruction.unit() != 1 ||
        instruction.part() != part) {
      continue;
    }
    return Remove(program, i);
  }
  ADD_FAILURE() << "no " << Instruction::Kind_Name(kind) << " of part " << part;
}

// Of the instruction's operands of this part, the one whose buffer is a slice.
void RemoveSlice(Plan& plan, Instruction::Kind kind, Instruction::Part part) {
  auto& operands = *FirstOf(plan, kind, 1).mutable_operands();
  for (int o = 0; o < operands.size(); ++o) {
    if (operands[o].part() != part ||
        !Train(plan).buffers(operands[o].buffer()).slice()) {
      continue;
    }
    operands.DeleteSubrange(o, 1);
    return;
  }
  ADD_FAILURE() << "no slice";
}

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
  int zero = 3;
};

const Fault kFaults[] = {
    {"parameters that nobody gathers",
     [](Plan& p) { RemoveFirst(p, Instruction::GATHER_PARAMETERS, 1); },
     "the parameters of unit 1 are not whole: no GATHER_PARAMETERS"},
    {"parameters that nobody gathers in place",
     [](Plan& p) { RemoveFirst(p, Instruction::GATHER_PARAMETERS, 1); },
     "the parameters of unit 1 are not whole: no GATHER_PARAMETERS", 1},
    {"a slice that is read as a whole",
     [](Plan& p) {
       const Instruction& gather =
           FirstOf(p, Instruction::GATHER_PARAMETERS, 1);
       SetOperand(FirstOf(p, Instruction::FORWARD, 1), Instruction::WEIGHTS,
                  gather.operands(0).buffer());
     },
     "uses a slice of unit 1 as if it were whole"},
    {"gathered into the slice",
     [](Plan& p) {
       Instruction& gather = FirstOf(p, Instruction::GATHER_PARAMETERS, 1);
       gather.mutable_operands(1)->set_buffer(gather.operands(0).buffer());
     },
     "does not make its unit's parameters whole"},
    {"gathered among those that have the same slice",
     [](Plan& p) {
       for (int g = 0; g < p.groups_size(); ++g) {
         if (p.groups(g).name() != "data every 2") continue;
         FirstOf(p, Instruction::GATHER_PARAMETERS, 1).set_group(g);
       }
     },
     "group data every 2 has other ranks than data by 2"},
    {"a unit that is not dealt, though it rests in slices",
     [](Plan& p) {
       for (Placement& placement : *p.mutable_roles(0)->mutable_placements()) {
         if (placement.unit() == 1) placement.mutable_parts(0)->clear_dealt();
       }
     },
     "part 0 of unit 1 is on ranks 0, 1, 2, 3"},
    {"gradients that nobody scatters",
     [](Plan& p) { RemoveFirst(p, Instruction::SCATTER_GRADS, 1); },
     "the gradients of unit 1 are not scattered yet"},
    {"gradients that nobody scatters in place",
     [](Plan& p) { RemoveFirst(p, Instruction::SCATTER_GRADS, 1); },
     "the gradients of unit 1 are not scattered yet", 1},
    {"gradients that are scattered twice",
     [](Plan& p) {
       Program& program = Train(p);
       const int first = First(program, Instruction::SCATTER_GRADS, 1);
       const Instruction again = program.instructions(first);
       for (int i = first + 1; i < program.instructions_size(); ++i) {
         Instruction& other = *program.mutable_instructions(i);
         if (other.kind() != Instruction::SCATTER_GRADS) continue;
         other = again;
         return;
       }
     },
     "they were scattered before"},
    {"gradients scattered before their last addend",
     [](Plan& p) {
       Instruction& scatter = FirstOf(p, Instruction::SCATTER_GRADS, 1);
       Instruction& adds = FirstOf(p, Instruction::BACKWARD_WEIGHT, 1);
       scatter.Swap(&adds);
       scatter.mutable_after()->Swap(adds.mutable_after());
     },
     "nothing was added to these gradients"},
    {"gradients added to a slice",
     [](Plan& p) {
       const Instruction& scatter = FirstOf(p, Instruction::SCATTER_GRADS, 1);
       SetOperand(FirstOf(p, Instruction::BACKWARD_WEIGHT, 1),
                  Instruction::WEIGHT_GRADIENTS, scatter.operands(1).buffer());
     },
     "uses a slice of unit 1 as if it were whole"},
    {"scattered after the norm",
     [](Plan& p) {
       const Instruction again = FirstOf(p, Instruction::SCATTER_GRADS, 1);
       *Train(p).add_instructions() = again;
     },
     "the gradients of unit 1 were used before"},
    {"moments that are whole",
     [](Plan& p) { BufferOf(p, Buffer::OPTIMIZER_STATE, 1).set_slice(false); },
     "OPTIMIZER_STATE of unit 1 is whole, and the unit rests in slices"},
    {"a slice of another size",
     [](Plan& p) {
       Buffer& moments = BufferOf(p, Buffer::OPTIMIZER_STATE, 1);
       moments.set_bytes(moments.bytes() - 64);
     },
     "bytes, where"},
    {"gathered parameters of another size",
     [](Plan& p) {
       Buffer& whole = BufferOf(p, Buffer::UNSHARDED_PARAMETERS, 1);
       whole.set_bytes(whole.bytes() / 2);
     },
     "UNSHARDED_PARAMETERS of unit 1 has"},
    {"gathered gradients of another size",
     [](Plan& p) {
       Buffer& whole = BufferOf(p, Buffer::UNSHARDED_GRADIENTS, 1);
       whole.set_bytes(whole.bytes() / 2);
     },
     "UNSHARDED_GRADIENTS of unit 1 has"},
    {"an activation in slices",
     [](Plan& p) { BufferOf(p, Buffer::ACTIVATION, 1).set_slice(true); },
     "ACTIVATION of unit 1 is a slice, which it cannot be"},
    {"a gather that says to read only",
     [](Plan& p) {
       for (Instruction::Operand& operand :
            *FirstOf(p, Instruction::GATHER_PARAMETERS, 1).mutable_operands()) {
         operand.set_access(Instruction::READ);
       }
     },
     "does not make its unit's parameters whole", 1},
    {"a scatter that says to write over the slice",
     [](Plan& p) {
       for (Instruction& scatter : *Train(p).mutable_instructions()) {
         if (scatter.kind() != Instruction::SCATTER_GRADS) continue;
         for (Instruction::Operand& operand : *scatter.mutable_operands()) {
           if (operand.part() != Instruction::SLICE) continue;
           operand.set_access(Instruction::WRITE);
         }
       }
     },
     "in device anew, to which T u", 2},
    {"slices of two units summed as one range",
     [](Plan& p) {
       RemoveFirst(p, Instruction::REDUCE_GRADS, 2);
       FirstOf(p, Instruction::REDUCE_GRADS, 1).set_unit_count(2);
     },
     "slices of unit 1 are no one range with others"},
    {"a norm over others than those with the same slice",
     [](Plan& p) { FirstOf(p, Instruction::GRAD_NORM, 1).clear_group(); },
     "is not dealt over those who have the same, data every 2"},
    {"replicas that do not sum their slices",
     [](Plan& p) { RemoveFirst(p, Instruction::REDUCE_GRADS, 1); },
     "REDUCE_GRADS of unit 1 is missing"},
};

TEST(CheckAtRest, FindsEveryFault) {
  for (const int zero : {1, 2, 3}) {
    EXPECT_EQ(CheckPrograms(ExamplePlan(ZeroJob(zero))), absl::OkStatus());
  }
  for (const Fault& fault : kFaults) {
    Plan plan = ExamplePlan(ZeroJob(fault.zero));
    fault.plant(plan);
    const absl::Status status = CheckPrograms(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()).substr(0, 400),
                HasSubstr(fault.message))
        << fault.name;
  }
}

struct ExpertsFault {
  const char* name;
  int expert;
  int zero;
  void (*plant)(Plan& plan);
  const char* message;
};

const ExpertsFault kExpertsFaults[] = {
    {"experts that nobody gathers", 2, 3,
     [](Plan& p) { RemoveOfPart(p, Instruction::GATHER_PARAMETERS, 1); },
     "the parameters of unit 1 are not whole: no GATHER_PARAMETERS over group "
     "data comes"},
    {"attention that nobody gathers beside experts", 4, 1,
     [](Plan& p) { RemoveOfPart(p, Instruction::GATHER_PARAMETERS, 0); },
     "the parameters of unit 1 are not whole: no GATHER_PARAMETERS over group "
     "expert comes"},
    {"a gather of experts that begins the buffer anew", 2, 3,
     [](Plan& p) {
       for (Instruction& gather : *Train(p).mutable_instructions()) {
         if (gather.kind() != Instruction::GATHER_PARAMETERS ||
             gather.part() != 1) {
           continue;
         }
         gather.mutable_operands(1)->set_access(Instruction::WRITE);
       }
     },
     "the parameters of unit 1 are not whole: no GATHER_PARAMETERS over group "
     "data x expert comes"},
    {"gradients of experts that nobody scatters", 2, 2,
     [](Plan& p) { RemoveOfPart(p, Instruction::SCATTER_GRADS, 1); },
     "the gradients of unit 1 are not scattered yet"},
    {"gradients of experts that are scattered over all", 2, 1,
     [](Plan& p) {
       for (Instruction& scatter : *Train(p).mutable_instructions()) {
         if (scatter.kind() != Instruction::SCATTER_GRADS ||
             scatter.unit() != 1 || scatter.part() != 1) {
           continue;
         }
         scatter.set_group(p.roles(0).placements(1).parts(0).dealt());
       }
     },
     "group data x expert has other ranks than data, over which its part is "
     "dealt"},
    {"a gather of what is not dealt", 4, 3,
     [](Plan& p) { FirstOf(p, Instruction::GATHER_PARAMETERS, 1).set_part(1); },
     "part 1 of its unit is not the first that is dealt over some ranks"},
    {"a pass without the experts, which are where they rest", 4, 3,
     [](Plan& p) {
       RemoveSlice(p, Instruction::FORWARD, Instruction::WEIGHTS);
     },
     "leaves out the parts of unit 1 that are not dealt"},
    {"gradients of experts that go nowhere", 4, 2,
     [](Plan& p) {
       RemoveSlice(p, Instruction::BACKWARD_WEIGHT,
                   Instruction::WEIGHT_GRADIENTS);
     },
     "leaves out the parts of unit 1 that are not dealt"},
    {"experts dealt over ranks that have others", 4, 1,
     [](Plan& p) {
       Placement& placement = *p.mutable_roles(0)->mutable_placements(1);
       placement.mutable_parts(1)->set_dealt(placement.parts(0).dealt());
     },
     "but dealt over group expert, which has others"},
    {"moments with room for the attention of one rank only", 4, 1,
     [](Plan& p) {
       Buffer& moments = BufferOf(p, Buffer::OPTIMIZER_STATE, 1);
       moments.set_bytes(moments.bytes() - 128);
     },
     "OPTIMIZER_STATE of unit 1 has"},
};

TEST(CheckAtRest, FindsFaultsOfPartsThatAreDealtOverOthers) {
  for (const int expert : {2, 4}) {
    for (const int zero : {1, 2, 3}) {
      EXPECT_EQ(CheckPrograms(ExamplePlan(ExpertsJob(expert, zero))),
                absl::OkStatus());
    }
  }
  for (const ExpertsFault& fault : kExpertsFaults) {
    SCOPED_TRACE(fault.name);
    Plan plan = ExamplePlan(ExpertsJob(fault.expert, fault.zero));
    fault.plant(plan);
    const absl::Status status = CheckPrograms(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()).substr(0, 400),
                HasSubstr(fault.message));
  }
}

TEST(CheckAtRest, AllDealAlike) {
  Plan plan = ExamplePlan(ZeroJob(1));
  ProgramOf(plan, 1, Program::TRAIN);  // each rank has a role of its own
  EXPECT_EQ(CheckAtRest(plan), absl::OkStatus());
  for (Placement& placement : *plan.mutable_roles(0)->mutable_placements()) {
    placement.mutable_parts(0)->clear_dealt();
  }
  EXPECT_THAT(std::string(CheckAtRest(plan).message()),
              HasSubstr("part 0 of unit 0 is dealt over group data by 2, but "
                        "not by rank 0"));
}

}  // namespace
}  // namespace troupe
