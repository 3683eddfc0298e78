// Plans whose products are cut in three dimensions, broken in the ways in which
// cubes of ranks can be: every fault is found, and named.
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_layouts.h"
#include "proto/plan/check_program.h"
#include "tests/proto/plan/planted.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kTrain = Program::TRAIN;

// Two replicas of cubes of eight.
JobSpec CubeJob() {
  JobSpec job = ExampleJob({.data = 2, .micro_batch_size = 4});
  job.mutable_parallelism()->set_tensor(8);
  job.mutable_parallelism()->set_tensor_method("3d");
  return job;
}

// The sum of the first norm's row sums.
Op& SumOfRowSums(Plan& plan) {
  return *TableOf(plan).mutable_ops(Nth(plan, Op::ROW_SUMS, 0) + 1);
}

Op::Operand& OperandOf(
    google::protobuf::RepeatedPtrField<Op::Operand>& operands,
    const std::string& name) {
  for (Op::Operand& operand : operands) {
    if (operand.name() == name) return operand;
  }
  ADD_FAILURE() << "no operand " << name;
  return operands[0];
}
TensorSpec& InputOf(Plan& plan, Op& op, const std::string& name) {
  return *TableOf(plan).mutable_tensors(
      OperandOf(*op.mutable_inputs(), name).tensor());
}
TensorSpec& OutputOf(Plan& plan, Op& op, const std::string& name) {
  return *TableOf(plan).mutable_tensors(
      OperandOf(*op.mutable_outputs(), name).tensor());
}

// Each rank reads its own.
void LeaveSumOut(Plan& plan) {
  const int own = NthOp(plan, Op::ROW_SUMS, 0).outputs(0).tensor();
  OperandOf(*NthOp(plan, Op::SPLIT_NORM, 0).mutable_inputs(), "row_sums")
      .set_tensor(own);
  TableOf(plan).mutable_ops()->DeleteSubrange(Nth(plan, Op::ROW_SUMS, 0) + 1,
                                              1);
}

void Forget(const std::string& axis, Layout& layout) {
  for (int i = layout.axes_size(); i-- > 0;) {
    if (layout.axes(i).axis() == axis) {
      layout.mutable_axes()->DeleteSubrange(i, 1);
    }
  }
}
// As if the axis did not cut it.
void MakeWhole(const std::string& axis, int size, TensorSpec& tensor) {
  Forget(axis, *tensor.mutable_layout());
  Forget(axis, *tensor.mutable_gradient_layout());
  for (Dim& dim : *tensor.mutable_dims()) {
    for (Dim::Section& section : *dim.mutable_sections()) {
      for (int c = section.cuts_size(); c-- > 0;) {
        if (section.cuts(c).axis() != axis) continue;
        section.mutable_cuts()->DeleteSubrange(c, 1);
        section.set_count(section.count() * size);
      }
    }
  }
}

const PlantedFault kLayoutFaults[] = {
    {"row sums of some columns taken for those of all",
     [](Plan& p) { LeaveSumOut(p); },
     "SPLIT_NORM reads ln_1 row sums of some columns as REPLICATE, but it is "
     "PARTIAL"},
    {"the sum left out, and nobody told",
     [](Plan& p) {
       LeaveSumOut(p);
       TensorSpec& row_sums = OutputOf(p, NthOp(p, Op::ROW_SUMS, 0), "y");
       Forget("tensor_z", *row_sums.mutable_layout());
     },
     "ROW_SUMS makes ln_1 row sums of some columns as PARTIAL, but it is "
     "REPLICATE"},
    {"row sums gathered",
     [](Plan& p) {
       SumOfRowSums(p).mutable_exchange()->set_forward(ALL_GATHER);
     },
     "does ALL_GATHER and ALL_REDUCE in backward, which does not make "
     "REPLICATE of PARTIAL"},
    {"row sums scattered",
     [](Plan& p) {
       SumOfRowSums(p).mutable_exchange()->set_forward(REDUCE_SCATTER);
     },
     "does REDUCE_SCATTER and ALL_REDUCE in backward"},
    {"their gradients not summed",
     [](Plan& p) {
       SumOfRowSums(p).mutable_exchange()->set_backward(COLLECTIVE_UNSPECIFIED);
     },
     "does ALL_REDUCE and COLLECTIVE_UNSPECIFIED in backward, which does not "
     "make REPLICATE of PARTIAL, and REPLICATE of PARTIAL"},
    {"their gradients not summed, and nobody told",
     [](Plan& p) {
       Op& sum = SumOfRowSums(p);
       sum.mutable_exchange()->set_backward(COLLECTIVE_UNSPECIFIED);
       Forget("tensor_z", *OutputOf(p, sum, "y").mutable_gradient_layout());
     },
     "SPLIT_NORM reads ln_1 row sums, whose gradient is PARTIAL here, but "
     "REPLICATE "
     "elsewhere"},
    {"summed over others",
     [](Plan& p) {
       SumOfRowSums(p).mutable_exchange()->set_axes(0, "tensor_y");
     },
     "along tensor_y, op 1 EXCHANGE does ALL_REDUCE and ALL_REDUCE in "
     "backward, "
     "which does not make SHARD(0) of SHARD(0)"},
    {"a product's sums scattered over others",
     [](Plan& p) {
       for (Op& op : *TableOf(p).mutable_ops()) {
         if (op.exchange().forward() != REDUCE_SCATTER) continue;
         op.mutable_exchange()->set_axes(0, "tensor_y");
         return;
       }
     },
     "along tensor_y, op 5 EXCHANGE does REDUCE_SCATTER and ALL_GATHER in "
     "backward, which does not make SHARD(2) of SHARD(2)"},
    {"samples of y gathered, and with them those of x",
     [](Plan& p) {
       for (Op& op : *TableOf(p).mutable_ops()) {
         if (op.exchange().forward() != ALL_GATHER) continue;
         MakeWhole("tensor_x", 2, OutputOf(p, op, "y"));
         return;
       }
     },
     "along tensor_x, op 3 EXCHANGE is along tensor_y, and does not make "
     "REPLICATE of SHARD(0)"},
    {"gradients of y's samples scattered, and with them those of x",
     [](Plan& p) {
       for (Op& op : *TableOf(p).mutable_ops()) {
         if (op.exchange().forward() != ALL_GATHER) continue;
         Forget("tensor_x", *OutputOf(p, op, "y").mutable_gradient_layout());
         return;
       }
     },
     "along tensor_x, op 3 EXCHANGE is along tensor_y, and does not make "
     "REPLICATE of SHARD(0)"},
    {"a norm of rows, of which each rank has some columns",
     [](Plan& p) {
       Op norm = NthOp(p, Op::SPLIT_NORM, 0);
       norm.set_kind(Op::NORM);
       norm.mutable_inputs()->RemoveLast();
       const int row_sums = Nth(p, Op::ROW_SUMS, 0);
       TableOf(p).mutable_ops()->DeleteSubrange(row_sums, 2);
       *TableOf(p).mutable_ops(row_sums) = norm;
     },
     "NORM reads and makes some tensors whole and others in slices"},
    {"a norm of some columns that makes all",
     [](Plan& p) {
       MakeWhole("tensor_z", 2, OutputOf(p, NthOp(p, Op::SPLIT_NORM, 0), "y"));
     },
     "SPLIT_NORM makes ln_1 as SHARD(2), but it is REPLICATE"},
    {"a norm of some samples that makes all",
     [](Plan& p) {
       MakeWhole("tensor_x", 2, OutputOf(p, NthOp(p, Op::SPLIT_NORM, 0), "y"));
     },
     "SPLIT_NORM makes ln_1 as SHARD(0), but it is REPLICATE"},
    {"statistics of some samples only",
     [](Plan& p) {
       MakeWhole("tensor_y", 2,
                 OutputOf(p, NthOp(p, Op::SPLIT_NORM, 0), "rstd"));
     },
     "as SHARD(0), but it is REPLICATE"},
    {"row sums of other samples",
     [](Plan& p) {
       Op& sum = SumOfRowSums(p);
       MakeWhole("tensor_x", 2, InputOf(p, sum, "x"));
       MakeWhole("tensor_x", 2, OutputOf(p, sum, "y"));
     },
     "ROW_SUMS makes ln_1 row sums of some columns as SHARD(0), but it is "
     "REPLICATE"},
    {"rows that are whole",
     [](Plan& p) {
       MakeWhole("tensor_z", 2, InputOf(p, NthOp(p, Op::ROW_SUMS, 0), "x"));
     },
     "as REPLICATE, but it is"},
};

TEST(CheckLayouts, NamesTheFaultOfCubes) {
  for (const PlantedFault& fault : kLayoutFaults) {
    Plan plan = ExamplePlan(CubeJob());
    ASSERT_EQ(CheckLayouts(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckLayouts(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
    EXPECT_FALSE(CheckPrograms(plan).ok()) << fault.name;
  }
}

// The first exchange of a rank's step along an axis.
Instruction& FirstExchange(Plan& plan, int rank, const std::string& axis) {
  for (Instruction& instruction :
       *ProgramOf(plan, rank, kTrain).mutable_instructions()) {
    if (instruction.kind() != Instruction::EXCHANGE) continue;
    const Group& group = plan.groups(instruction.group());
    if (group.spans(0).axis() == axis) return instruction;
  }
  ADD_FAILURE() << "no exchange along " << axis;
  return *ProgramOf(plan, rank, kTrain).mutable_instructions(0);
}

int GroupNamed(const Plan& plan, const std::string& name) {
  for (int g = 0; g < plan.groups_size(); ++g) {
    if (plan.groups(g).name() == name) return g;
  }
  ADD_FAILURE() << "no group " << name;
  return 0;
}

// A rank's first instruction of a kind in its step.
int FirstInstruction(Plan& plan, int rank, Instruction::Kind kind) {
  const Program& program = ProgramOf(plan, rank, kTrain);
  for (int i = 0; i < program.instructions_size(); ++i) {
    if (program.instructions(i).kind() == kind) return i;
  }
  ADD_FAILURE() << "no " << Instruction::Kind_Name(kind);
  return 0;
}

// Of a rank's first instruction of a kind, the group.
void SetGroup(Plan& plan, int rank, Instruction::Kind kind,
              const std::string& group) {
  const int first = FirstInstruction(plan, rank, kind);
  ProgramOf(plan, rank, kTrain)
      .mutable_instructions(first)
      ->set_group(GroupNamed(plan, group));
}

const PlantedFault kProgramFaults[] = {
    {"row sums summed over others",
     [](Plan& p) {
       Instruction& exchange = FirstExchange(p, 1, "tensor_z");
       exchange.set_group(GroupNamed(p, "tensor_y-exchanges"));
     },
     "is not of the ranks along tensor_z"},
    {"samples gathered over others",
     [](Plan& p) {
       Instruction& exchange = FirstExchange(p, 1, "tensor_y");
       exchange.set_group(GroupNamed(p, "tensor_x-exchanges"));
     },
     "is not of the ranks along tensor_y"},
    {"row sums that a rank does not sum",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       for (int i = 0; i < program.instructions_size(); ++i) {
         const Instruction& instruction = program.instructions(i);
         if (instruction.kind() != Instruction::EXCHANGE ||
             instruction.unit() != kPlantedUnit ||
             instruction.exchange().collective() != ALL_REDUCE) {
           continue;
         }
         Remove(program, i);
         return;
       }
       ADD_FAILURE() << "no ALL_REDUCE";
     },
     "of unit 1 is missing for micro-batch 0"},
    {"row sums summed in f32",
     [](Plan& p) {
       FirstExchange(p, 1, "tensor_z").mutable_exchange()->set_dtype(F32);
     },
     "is ALL_REDUCE of F32, where its unit needs ALL_REDUCE of F64"},
    {"weights that nobody sums over x",
     [](Plan& p) {
       for (Unit::Part& part :
            *p.mutable_units(kPlantedUnit)->mutable_parts()) {
         for (int s = part.shares_size(); s-- > 0;) {
           if (part.shares(s).axis() == "tensor_x") {
             part.mutable_shares()->DeleteSubrange(s, 1);
           }
         }
       }
     },
     "along tensor_x, "},
    {"weights whose gradients are taken for the same along x",
     [](Plan& p) {
       Unit::Part& part = *p.mutable_units(kPlantedUnit)->mutable_parts(0);
       for (Unit::Part::Share& share : *part.mutable_shares()) {
         if (share.axis() == "tensor_x") share.set_summed(false);
       }
     },
     "along tensor_x, "},
    {"a part summed over the replicas only",
     [](Plan& p) {
       p.mutable_roles(0)
           ->mutable_placements(kPlantedUnit)
           ->mutable_parts(0)
           ->set_summed(GroupNamed(p, "data"));
     },
     "but rank 0 sums its gradients over ranks 0, 8"},
    {"slices that nobody sums",
     [](Plan& p) {
       p.mutable_roles(0)
           ->mutable_placements(kPlantedUnit)
           ->mutable_parts(0)
           ->clear_dealt();
     },
     "part 0 of unit 1 is on ranks 0, 2, 4, 6, 8, 10, 12, 14 but rank 0 sums "
     "its gradients over ranks 0, 2, 8, 10"},
    {"slices over others, which do not have the same",
     [](Plan& p) {
       p.mutable_roles(0)
           ->mutable_placements(kPlantedUnit)
           ->mutable_parts(0)
           ->set_dealt(GroupNamed(p, "tensor_y-exchanges"));
     },
     "part 0 of unit 1 is on ranks 0, 4, 8, 12 but rank 0 sums its gradients "
     "over ranks 0, 2, 8, 10"},
    {"gradients that a rank does not scatter over x",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Remove(program, FirstInstruction(p, 1, Instruction::SCATTER_GRADS));
     },
     "the gradients of unit 3 are not scattered yet"},
    {"gradients that a rank scatters over others",
     [](Plan& p) {
       SetGroup(p, 1, Instruction::SCATTER_GRADS, "tensor_y-exchanges");
     },
     "group tensor_y-exchanges has other ranks than tensor_x, over which its "
     "part is dealt"},
    {"weights that a rank gathers from others",
     [](Plan& p) {
       SetGroup(p, 1, Instruction::GATHER_PARAMETERS, "tensor_z-exchanges");
     },
     "group tensor_z-exchanges has other ranks than tensor_x, over which its "
     "part is dealt"},
};

TEST(CheckPrograms, NamesTheFaultOfCubes) {
  ExpectProgramFaultsAreNamed(CubeJob(), kProgramFaults);
}

}  // namespace
}  // namespace troupe
