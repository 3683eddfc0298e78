// Plans whose units are cut over ranks, broken in the ways in which exchanges,
// layouts and sums can be: every fault is found, and named.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_layouts.h"
#include "proto/plan/check_program.h"
#include "proto/plan/operand.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kTrain = Program::TRAIN;

JobSpec TensorJob(bool sequence) {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_parallelism()->set_tensor(2);
  job.mutable_parallelism()->set_sequence_parallel(sequence);
  return job;
}

int First(const Program& program, Instruction::Kind kind, int unit) {
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    if (instruction.kind() == kind && instruction.unit() == unit) return i;
  }
  ADD_FAILURE() << "no " << Instruction::Kind_Name(kind);
  return 0;
}

// The first exchange of a rank's step.
Instruction& FirstExchange(Plan& plan, int rank) {
  for (Instruction& instruction :
       *ProgramOf(plan, rank, kTrain).mutable_instructions()) {
    if (instruction.kind() == Instruction::EXCHANGE) return instruction;
  }
  ADD_FAILURE() << "no exchange";
  return *ProgramOf(plan, rank, kTrain).mutable_instructions(0);
}

Op& FirstOp(Plan& plan, int unit, Op::Kind kind) {
  for (Op& op : *plan.mutable_tables(plan.units(unit).table())->mutable_ops()) {
    if (op.kind() == kind) return op;
  }
  ADD_FAILURE() << "no such op";
  return *plan.mutable_tables(0)->mutable_ops(0);
}

TensorSpec& TensorOf(Plan& plan, int unit, const Op::Operand& operand) {
  return *plan.mutable_tables(plan.units(unit).table())
              ->mutable_tensors(operand.tensor());
}

// Two replicas of two ranks, each with half of every sequence.
JobSpec ContextJob() {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_parallelism()->set_context(2);
  return job;
}

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
  bool sequence = false;
};

const Fault kFaults[] = {
    {"an exchange that a rank lacks",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Remove(program, First(program, Instruction::EXCHANGE, 1));
     },
     "EXCHANGE of op 5 of unit 1 is missing for micro-batch 0"},
    {"one that is there twice",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       *program.add_instructions() =
           program.instructions(First(program, Instruction::EXCHANGE, 1));
     },
     "EXCHANGE of op 5 of unit 1 is there 2 times"},
    {"another order on one rank",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       int found[2] = {-1, -1};
       for (int i = 0; i < program.instructions_size(); ++i) {
         if (program.instructions(i).kind() != Instruction::EXCHANGE) continue;
         if (found[0] < 0) {
           found[0] = i;
         } else if (found[1] < 0) {
           found[1] = i;
         }
       }
       program.mutable_instructions()->SwapElements(found[0], found[1]);
       // Their waits go with their places.
       Instruction& a = *program.mutable_instructions(found[0]);
       Instruction& b = *program.mutable_instructions(found[1]);
       a.mutable_after()->Swap(b.mutable_after());
     },
     "collective 0 of group tensor-exchanges is X u0"},
    {"another size",
     [](Plan& p) { FirstExchange(p, 1).mutable_operands(0)->set_bytes(64); },
     "moves 64 bytes, where output has 1024"},
    {"another tensor of the same size",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Instruction& exchange = *program.mutable_instructions(
           First(program, Instruction::EXCHANGE, 3));
       exchange.mutable_operands(0)->set_offset(exchange.operands(0).offset() +
                                                64);
     },
     "are not where its unit's tensors lie"},
    {"nothing to put it", [](Plan& p) { FirstExchange(p, 1).clear_operands(); },
     "are not where its unit's tensors lie"},
    {"past the end of its buffer",
     [](Plan& p) {
       FirstExchange(p, 1).mutable_operands(0)->set_offset(int64_t{1} << 40);
     },
     "buffer of"},
    {"a pass that says to use less than it does",
     [](Plan& p) {
       for (Instruction& i : *ProgramOf(p, 1, kTrain).mutable_instructions()) {
         if (i.kind() != Instruction::BACKWARD_INPUT) continue;
         for (Instruction::Operand& operand : *i.mutable_operands()) {
           if (operand.part() != Instruction::SEGMENT_GRADIENT) continue;
           const Buffer& buffer =
               ProgramOf(p, 1, kTrain).buffers(operand.buffer());
           const BytesUsed bytes = BytesOf(operand, buffer);
           operand.set_bytes(bytes.end - bytes.begin - 4);
         }
       }
     },
     "of SEGMENT_GRADIENTS"},
    {"a pass that says to write what another does",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Instruction& forward = *program.mutable_instructions(
           First(program, Instruction::FORWARD, 1));
       for (Instruction::Operand& operand : *forward.mutable_operands()) {
         if (operand.part() == Instruction::SAVED) operand.clear_bytes();
       }
     },
     "F u1 m0: says that it writes bytes 0 to"},
    {"an exchange that says to read what it makes",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Instruction& exchange = *program.mutable_instructions(
           First(program, Instruction::EXCHANGE, 3));
       exchange.mutable_operands(1)->set_access(Instruction::ADD);
     },
     "reads SEGMENT_VALUES u3 m0, of which nothing has written bytes"},
    {"a sum that says to lose its summands",
     [](Plan& p) {
       FirstExchange(p, 1).mutable_operands(0)->set_access(Instruction::WRITE);
     },
     "or not for what it does with them"},
    {"a pass that says to read what it writes",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Instruction& forward = *program.mutable_instructions(
           First(program, Instruction::FORWARD, 1));
       for (Instruction::Operand& operand : *forward.mutable_operands()) {
         operand.set_access(Instruction::READ);
       }
     },
     "its operands have not all that its ops write"},
    {"another collective",
     [](Plan& p) {
       FirstExchange(p, 1).mutable_exchange()->set_collective(ALL_GATHER);
     },
     "is ALL_GATHER of F32, where its unit needs ALL_REDUCE of F32"},
    {"over the replicas",
     [](Plan& p) {
       Instruction& exchange = FirstExchange(p, 1);
       for (int g = 0; g < p.groups_size(); ++g) {
         if (p.groups(g).name() == "data") exchange.set_group(g);
       }
     },
     "is not of the ranks along tensor"},
    {"of no exchange",
     [](Plan& p) { FirstExchange(p, 1).mutable_exchange()->set_op(0); },
     "op 0 of its unit is no EXCHANGE"},
    {"a summand read as a whole",
     [](Plan& p) {
       // What the norm behind attention reads.
       for (Op& op : *p.mutable_tables(p.units(1).table())->mutable_ops()) {
         if (op.kind() != Op::NORM || op.inputs_size() != 2) continue;
         TensorSpec& x = TensorOf(p, 1, op.inputs(0));
         x.mutable_layout()->add_axes()->set_axis("tensor");
         x.mutable_layout()->mutable_axes(0)->set_placement(Layout::PARTIAL);
       }
     },
     "which does not make PARTIAL of PARTIAL"},
    {"an exchange left out of a unit",
     [](Plan& p) {
       UnitTable& table = *p.mutable_tables(p.units(1).table());
       for (int i = 0; i < table.ops_size(); ++i) {
         const Op& op = table.ops(i);
         if (op.exchange().forward() != ALL_REDUCE) continue;
         // An op that read what it made reads what it was to turn.
         const int x = op.inputs(0).tensor();
         const int y = op.outputs(0).tensor();
         table.mutable_ops()->DeleteSubrange(i, 1);
         for (Op& reader : *table.mutable_ops()) {
           for (Op::Operand& input : *reader.mutable_inputs()) {
             if (input.tensor() == y) input.set_tensor(x);
           }
         }
         break;
       }
     },
     "NORM reads attn.c_proj summand as REPLICATE, but it is PARTIAL"},
    {"a slice read as another",
     [](Plan& p) {
       TensorSpec& y = TensorOf(p, 1, FirstOp(p, 1, Op::ATTENTION).outputs(0));
       y.mutable_layout()->mutable_axes(0)->set_dim(1);
     },
     "but its dim 1 is whole"},
    {"gradients of a norm not summed over its slices",
     [](Plan& p) {
       Program& program = ProgramOf(p, 2, kTrain);
       Remove(program, First(program, Instruction::REDUCE_GRADS, 1));
     },
     "REDUCE_GRADS of unit 1 is missing", /*sequence=*/true},
    {"summed twice",
     [](Plan& p) {
       Program& program = ProgramOf(p, 2, kTrain);
       *program.add_instructions() =
           program.instructions(First(program, Instruction::REDUCE_GRADS, 1));
     },
     "REDUCE_GRADS of unit 1 is there 2 times", /*sequence=*/true},
    {"summed over the replicas only",
     [](Plan& p) {
       Placement& placement = *p.mutable_roles(0)->mutable_placements(1);
       placement.mutable_parts(0)->set_summed(placement.parts(1).summed());
     },
     "part 0 of unit 1 is on ranks 0, 1, 2, 3 but rank 0 sums its gradients "
     "over ranks 0, 2",
     /*sequence=*/true},
    {"one that nobody sums taken for one that is summed",
     [](Plan& p) {
       p.mutable_units(1)->mutable_parts(0)->mutable_shares(0)->set_summed(
           true);
     },
     "unit 1: along tensor, transformer.h.0.ln_1.weight is in part 0, of which "
     "ranks have 2 neighbours the same, with summands of its gradient, but of "
     "it they have 2 neighbours the same, with its gradient, too"},
    {"summands taken for the gradient",
     [](Plan& p) {
       p.mutable_units(2)->mutable_parts(0)->mutable_shares(0)->set_summed(
           false);
     },
     "unit 2: along tensor, transformer.h.1.ln_1.weight is in part 0",
     /*sequence=*/true},
    {"a piece each taken for the same",
     [](Plan& p) {
       Unit::Part::Share& share =
           *p.mutable_units(1)->mutable_parts(1)->add_shares();
       share.set_axis("tensor");
       share.set_copies(2);
     },
     "but of it they have a piece each"},
    {"a parameter in two parts",
     [](Plan& p) {
       Unit& unit = *p.mutable_units(1);
       const int64_t moved = unit.parts(0).elements() - 16;
       unit.mutable_parts(0)->set_elements(16);
       unit.mutable_parts(1)->set_elements(unit.parts(1).elements() + moved);
     },
     "is in part 1, of which ranks have a piece each"},
    {"the norm of what all have counted by all",
     [](Plan& p) {
       for (Instruction& i : *ProgramOf(p, 1, kTrain).mutable_instructions()) {
         if (i.kind() == Instruction::GRAD_NORM) i.clear_group();
       }
     },
     "is not dealt over those who have the same"},
};

const Fault kContextFaults[] = {
    {"an all-to-all that a rank lacks",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Remove(program, First(program, Instruction::EXCHANGE, 1));
     },
     "EXCHANGE of op 3 of unit 1 is missing for micro-batch 0"},
    {"blocks of another dim",
     [](Plan& p) { FirstOp(p, 1, Op::PACK).mutable_pack()->set_dim(1); },
     "moves what is not packed in 2 blocks of dim 2"},
    {"more blocks than ranks",
     [](Plan& p) { FirstOp(p, 1, Op::UNPACK).mutable_pack()->set_blocks(4); },
     "moves what is not unpacked in 2 blocks of dim 1"},
    {"gathered where it is turned",
     [](Plan& p) {
       FirstExchange(p, 1).mutable_exchange()->set_collective(ALL_GATHER);
     },
     "is ALL_GATHER of F32, where its unit needs ALL_TO_ALL of F32"},
    {"gradients summed over the replicas only",
     [](Plan& p) {
       // The share along the axis that cuts sequences.
       p.mutable_units(1)->mutable_parts(0)->mutable_shares()->DeleteSubrange(
           0, 1);
     },
     "but of it they have 2 neighbours the same, with summands of its "
     "gradient"},
};

// These change what the unit's ops need, too.
const Fault kLayoutFaults[] = {
    {"attention on a part of the keys",
     [](Plan& p) {
       // Nobody turns what it reads.
       UnitTable& table = *p.mutable_tables(p.units(1).table());
       for (int i = 0; i < table.ops_size(); ++i) {
         if (table.ops(i).kind() != Op::PACK) continue;
         const Op::Operand qkv = table.ops(i).inputs(0);
         table.mutable_ops()->DeleteSubrange(i, 3);
         table.mutable_ops(i)->mutable_inputs(0)->set_tensor(qkv.tensor());
         break;
       }
     },
     "ATTENTION reads attn.c_attn as SHARD(2), but it is SHARD(1)"},
    {"blocks that nobody puts together",
     [](Plan& p) {
       UnitTable& table = *p.mutable_tables(p.units(1).table());
       for (int i = 0; i < table.ops_size(); ++i) {
         if (table.ops(i).kind() != Op::UNPACK) continue;
         const int blocks = table.ops(i).inputs(0).tensor();
         table.mutable_ops()->DeleteSubrange(i, 1);
         table.mutable_ops(i)->mutable_inputs(0)->set_tensor(blocks);
         break;
       }
     },
     "moves what is not unpacked"},
};

TEST(CheckLayouts, NamesTheFaultOfSequencesThatAreCut) {
  for (const Fault& fault : kLayoutFaults) {
    Plan plan = ExamplePlan(ContextJob());
    EXPECT_EQ(CheckLayouts(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckLayouts(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
    EXPECT_FALSE(CheckPrograms(plan).ok()) << fault.name;
  }
}

TEST(CheckExchanges, NamesTheFaultOfSequencesThatAreCut) {
  EXPECT_EQ(CheckPrograms(ExamplePlan(ContextJob())), absl::OkStatus());
  for (const Fault& fault : kContextFaults) {
    Plan plan = ExamplePlan(ContextJob());
    fault.plant(plan);
    const absl::Status status = CheckPrograms(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()).substr(0, 400),
                HasSubstr(fault.message))
        << fault.name;
  }
}

TEST(CheckExchanges, NamesTheFault) {
  for (const bool sequence : {false, true}) {
    EXPECT_EQ(CheckPrograms(ExamplePlan(TensorJob(sequence))),
              absl::OkStatus());
  }
  for (const Fault& fault : kFaults) {
    Plan plan = ExamplePlan(TensorJob(fault.sequence));
    fault.plant(plan);
    const absl::Status status = CheckPrograms(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()).substr(0, 400),
                HasSubstr(fault.message))
        << fault.name;
  }
}

}  // namespace
}  // namespace troupe
