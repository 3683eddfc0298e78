// Plans whose products are of blocks, broken in the ways in which panels can
// be: every fault is found, and named.
#include "proto/plan/check_panels.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_layouts.h"
#include "tests/proto/plan/planted.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kTrain = Program::TRAIN;
// A square of four ranks, or two layers of them.
JobSpec BlocksJob(const std::string& method, int tensor) {
  JobSpec job = ExampleJob({.micro_batch_size = 4});
  job.mutable_parallelism()->set_tensor(tensor);
  job.mutable_parallelism()->set_tensor_method(method);
  return job;
}

// The block's first product is of two panels, the next two of its second.
Op& Product(Plan& plan, int n) { return NthOp(plan, Op::PRODUCT, n); }

// The exchange that brings this operand, or brings it back.
Op& Sends(Plan& plan, const Op::Operand& operand) {
  for (Op& op : *TableOf(plan).mutable_ops()) {
    if (op.kind() != Op::EXCHANGE) continue;
    if (op.outputs(0).tensor() == operand.tensor()) return op;
  }
  ADD_FAILURE() << "nobody sends it";
  return *TableOf(plan).mutable_ops(0);
}
Op& SendsBack(Plan& plan, const Op::Operand& operand) {
  for (Op& op : *TableOf(plan).mutable_ops()) {
    if (op.kind() != Op::RETURN) continue;
    if (op.inputs(0).tensor() == operand.tensor()) return op;
  }
  ADD_FAILURE() << "nobody sends it back";
  return *TableOf(plan).mutable_ops(0);
}

// What the tables say.
const PlantedFault kFaults[] = {
    {"a panel of x from another column",
     [](Plan& p) {
       Sends(p, InputOf(Product(p, 1), "x")).mutable_exchange()->set_root(0);
     },
     "EXCHANGE makes SHARD(2) of place 1 of what place 0 has"},
    {"a panel of the weight from another row",
     [](Plan& p) {
       Sends(p, InputOf(Product(p, 0), "w")).mutable_exchange()->set_root(1);
     },
     "EXCHANGE makes SHARD(0) of place 0 of what place 1 has"},
    {"the panel of x of another weight's rows",
     [](Plan& p) {
       const int other = InputOf(Product(p, 0), "x").tensor();
       InputOf(Product(p, 1), "x").set_tensor(other);
     },
     "PRODUCT reads ln_1, panel 0 as SHARD(2) of place 1, but it is SHARD(2) "
     "of place 0"},
    {"the rank's own columns for a panel",
     [](Plan& p) {
       Op::Operand& x = InputOf(Product(p, 0), "x");
       x.set_tensor(Sends(p, x).inputs(0).tensor());
     },
     "as SHARD(2) of place 0, but it is SHARD(2)"},
    {"the rank's own rows of the weight for a panel",
     [](Plan& p) {
       Op::Operand& w = InputOf(Product(p, 1), "w");
       w.set_tensor(Sends(p, w).inputs(0).tensor());
     },
     "as SHARD(0) of place 1, but it is SHARD(0)"},
    {"a panel twice, another not at all",
     [](Plan& p) {
       InputOf(Product(p, 1), "x") = InputOf(Product(p, 0), "x");
       InputOf(Product(p, 1), "w") = InputOf(Product(p, 0), "w");
       Product(p, 1).set_panel(0);
     },
     "PRODUCT is of panel 0, where 1 is due"},
    {"a panel left out",
     [](Plan& p) {
       Op& second = Product(p, 1);
       const int y = second.outputs(0).tensor();
       TableOf(p).mutable_ops()->DeleteSubrange(Nth(p, Op::PRODUCT, 1), 1);
       Product(p, 0).mutable_outputs(0)->set_tensor(y);
     },
     "is the last of 1 panels, but x is on 2 ranks along tensor_column"},
    {"a product that begins anew",
     [](Plan& p) { Product(p, 1).mutable_inputs()->DeleteSubrange(2, 1); },
     "is the last of 1 panels"},
    {"a panel of another weight",
     [](Plan& p) {
       // Of two weights with the same rows.
       TensorSpec& w = TensorOf(p, InputOf(Product(p, 1), "w"));
       Op& sends = Sends(p, InputOf(Product(p, 1), "w"));
       TensorSpec other = TensorOf(p, sends.inputs(0));
       other.set_name("another");
       *TableOf(p).add_tensors() = other;
       Op made = TableOf(p).ops(Nth(p, Op::WEIGHT, 0));
       made.mutable_outputs(0)->set_tensor(TableOf(p).tensors_size() - 1);
       sends.mutable_inputs(0)->set_tensor(TableOf(p).tensors_size() - 1);
       *TableOf(p).mutable_ops(Nth(p, Op::RETURN, 0)) = made;
       w.set_name("a panel of another");
     },
     "PRODUCT has a panel of another, the ones before of attn.c_attn weight"},
    {"biases added by each panel",
     [](Plan& p) {
       Product(p, 1).mutable_linear()->set_bias(true);
       Product(p, 1).add_parameters(Product(p, 0).parameters(0));
     },
     "PRODUCT adds biases that the first one adds"},
    {"gradients that stay where they are summed",
     [](Plan& p) {
       Sends(p, InputOf(Product(p, 0), "x"))
           .mutable_exchange()
           ->set_backward(ALL_REDUCE);
     },
     "does BROADCAST and ALL_REDUCE in backward, which does not make SHARD(2) "
     "of place 0 of SHARD(2), and SHARD(2) of PARTIAL(2) of place 0"},
    {"gradients that nobody sums",
     [](Plan& p) {
       Sends(p, InputOf(Product(p, 0), "w"))
           .mutable_exchange()
           ->set_backward(COLLECTIVE_UNSPECIFIED);
     },
     "does BROADCAST and COLLECTIVE_UNSPECIFIED in backward"},
    {"a panel that is sent back from another place",
     [](Plan& p) {
       SendsBack(p, InputOf(Product(p, 1), "w"))
           .mutable_exchange()
           ->set_root(0);
     },
     "RETURN brings back SHARD(0) of place 1 from SHARD(0) by BROADCAST of "
     "place 0"},
    {"a panel that is sent back along the other axis",
     [](Plan& p) {
       SendsBack(p, InputOf(Product(p, 0), "x"))
           .mutable_exchange()
           ->set_axes(0, "tensor_row");
     },
     "RETURN brings back SHARD(0) from SHARD(0) by BROADCAST of place 0"},
    {"a panel that is sent back from another tensor like it",
     [](Plan& p) {
       // The input of the MLP's first product, and of attention's.
       const int other =
           Sends(p, InputOf(Product(p, 0), "x")).inputs(0).tensor();
       SendsBack(p, InputOf(Product(p, 4), "x"))
           .mutable_inputs(1)
           ->set_tensor(other);
     },
     "RETURN brings back ln_2, panel 0 from ln_1, of which it was not made"},
    {"a panel that is sent back behind who reads it",
     [](Plan& p) {
       const Op back = SendsBack(p, InputOf(Product(p, 1), "x"));
       SendsBack(p, InputOf(Product(p, 1), "x")) = back;
       Op& product = Product(p, 1);
       const Op read = product;
       product = back;
       for (Op& op : *TableOf(p).mutable_ops()) {
         if (op.kind() != Op::RETURN || &op == &product) continue;
         if (op.inputs(0).tensor() == back.inputs(0).tensor()) op = read;
       }
     },
     ", which ops behind it read"},
    {"rows of y that no rank has those of x for",
     [](Plan& p) {
       TensorSpec& x = TensorOf(p, InputOf(Product(p, 0), "x"));
       for (Layout::AxisLayout& axis : *x.mutable_layout()->mutable_axes()) {
         if (axis.axis() == "tensor_row") axis.set_dim(1);
       }
       Dim::Section& batch = *x.mutable_dims(0)->mutable_sections(0);
       Dim::Section& length = *x.mutable_dims(1)->mutable_sections(0);
       batch.mutable_cuts()->Swap(length.mutable_cuts());
     },
     "EXCHANGE is along tensor_column, and does not make SHARD(1) of SHARD(0)"},
};

TEST(CheckPanels, NamesTheFault) {
  ASSERT_EQ(CheckPanels(ExamplePlan(BlocksJob("2d", 4))), absl::OkStatus());
  for (const PlantedFault& fault : kFaults) {
    Plan plan = ExamplePlan(BlocksJob("2d", 4));
    fault.plant(plan);
    const absl::Status layouts = CheckLayouts(plan);
    const absl::Status status = layouts.ok() ? CheckPanels(plan) : layouts;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message))
        << fault.name;
  }
}

// Of a rank's step, the n-th exchange within the block that moves so.
Instruction& NthExchange(Plan& plan, int rank, Collective collective, int n) {
  for (Instruction& instruction :
       *ProgramOf(plan, rank, kTrain).mutable_instructions()) {
    if (instruction.kind() == Instruction::EXCHANGE &&
        instruction.unit() == kPlantedUnit &&
        instruction.exchange().collective() == collective && n-- == 0) {
      return instruction;
    }
  }
  ADD_FAILURE() << "no " << Collective_Name(collective);
  return *ProgramOf(plan, rank, kTrain).mutable_instructions(0);
}

// What the programs do.
const PlantedFault kProgramFaults[] = {
    {"a panel that a rank does not send",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       for (int i = 0; i < program.instructions_size(); ++i) {
         if (program.instructions(i).exchange().collective() != BROADCAST) {
           continue;
         }
         Remove(program, i);
         return;
       }
     },
     "of unit 1 is missing for micro-batch 0"},
    {"a panel that is sent along the other axis",
     [](Plan& p) {
       Instruction& first = NthExchange(p, 1, BROADCAST, 0);
       for (int n = 1; n < 8; ++n) {
         const int group = NthExchange(p, 1, BROADCAST, n).group();
         if (group == first.group()) continue;
         first.set_group(group);
         return;
       }
     },
     "is not of the ranks along tensor_row"},
    {"summands that nobody may write in",
     [](Plan& p) {
       for (Instruction::Operand& operand :
            *NthExchange(p, 1, REDUCE, 0).mutable_operands()) {
         if (operand.part() == Instruction::FROM) {
           operand.set_access(Instruction::READ);
         }
       }
     },
     "its operands are not where its unit's tensors lie, or not for what it "
     "does with them"},
    {"sums that all have",
     [](Plan& p) {
       NthExchange(p, 1, REDUCE, 0)
           .mutable_exchange()
           ->set_collective(ALL_REDUCE);
     },
     "is ALL_REDUCE of F32, where its unit needs REDUCE of F32"},
    {"weights of layers whose gradients nobody sums",
     [](Plan& p) {
       for (Unit::Part& part :
            *p.mutable_units(kPlantedUnit)->mutable_parts()) {
         for (Unit::Part::Share& share : *part.mutable_shares()) {
           if (share.axis() == "tensor_depth") share.set_summed(false);
         }
       }
     },
     "along tensor_depth, "},
};

TEST(CheckPrograms, NamesTheFaultOfPanels) {
  ExpectProgramFaultsAreNamed(BlocksJob("2.5d", 8), kProgramFaults);
}

}  // namespace
}  // namespace troupe
