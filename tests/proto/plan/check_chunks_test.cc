// Plans whose loss is computed in chunks, broken in the ways in which chunks
// can be: every fault is found, and named.
#include "proto/plan/check_chunks.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kTrain = Program::TRAIN;
constexpr int kHead = 3;

// Two sequences of 8: chunks of 4 tokens.
JobSpec ChunkedJob(int tensor = 1) {
  JobSpec job = ExampleJob({.micro_batches = 2});
  job.mutable_memory()->set_loss_chunk_tokens(4);
  job.mutable_parallelism()->set_tensor(tensor);
  return job;
}

UnitTable& Table(Plan& plan) {
  return *plan.mutable_tables(plan.units(kHead).table());
}

// The n-th op of a kind.
Op& NthOp(Plan& plan, Op::Kind kind, int n) {
  for (Op& op : *Table(plan).mutable_ops()) {
    if (op.kind() == kind && n-- == 0) return op;
  }
  ADD_FAILURE() << "no " << Op::Kind_Name(kind);
  return *Table(plan).mutable_ops(0);
}

// The n-th instruction of the head for micro-batch 0.
Instruction& NthPass(Plan& plan, Instruction::Kind kind, int n) {
  Program& program = ProgramOf(plan, 0, kTrain);
  for (Instruction& instruction : *program.mutable_instructions()) {
    if (instruction.kind() == kind && instruction.unit() == kHead &&
        instruction.micro_batch() == 0 && n-- == 0) {
      return instruction;
    }
  }
  ADD_FAILURE() << "no " << Instruction::Kind_Name(kind);
  return *program.mutable_instructions(0);
}

void Exchange(Instruction& a, Instruction& b) {
  a.Swap(&b);
  a.mutable_after()->Swap(b.mutable_after());
}

struct Fault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
  int tensor = 1;
};

const Fault kFaults[] = {
    {"rows that are left out",
     [](Plan& p) {
       for (const auto kind : {Op::LINEAR, Op::CROSS_ENTROPY}) {
         NthOp(p, kind, 1).mutable_chunk()->set_first_row(5);
       }
     },
     "LINEAR: is of rows 5 to 9, where row 4 is due"},
    {"rows that are done twice",
     [](Plan& p) {
       for (const auto kind : {Op::LINEAR, Op::CROSS_ENTROPY}) {
         NthOp(p, kind, 2).mutable_chunk()->set_first_row(6);
       }
     },
     "LINEAR: is of rows 6 to 10, where row 8 is due"},
    {"a loss of other rows than its logits",
     [](Plan& p) {
       NthOp(p, Op::CROSS_ENTROPY, 1).mutable_chunk()->set_first_row(0);
     },
     "CROSS_ENTROPY: is of other rows than the LINEAR of its chunk"},
    {"logits of fewer rows",
     [](Plan& p) {
       for (const auto kind : {Op::LINEAR, Op::CROSS_ENTROPY}) {
         NthOp(p, kind, 3).mutable_chunk()->set_rows(3);
       }
     },
     "LINEAR: is of 3 rows, but logits of chunk 3 has 4"},
    {"a last chunk that is of none",
     [](Plan& p) {
       NthOp(p, Op::LINEAR, 3).clear_chunk();
       NthOp(p, Op::CROSS_ENTROPY, 3).clear_chunk();
     },
     "LINEAR: it reads \"ln_f\", which somebody behind it reads too"},
    {"another weight",
     [](Plan& p) { NthOp(p, Op::LINEAR, 2).set_parameters(0, 0); },
     "LINEAR: is where the first chunk has LINEAR, or has other parameters"},
    {"a chunk that goes forward before the one before has gone back",
     [](Plan& p) {
       Exchange(NthPass(p, Instruction::FORWARD, 2),
                NthPass(p, Instruction::BACKWARD_WEIGHT, 0));
     },
     "goes forward with chunk 2 before chunk 1 has gone back, whose values lie "
     "in the same place"},
    {"a chunk that goes back when the next is there",
     [](Plan& p) {
       Exchange(NthPass(p, Instruction::BACKWARD_WEIGHT, 0),
                NthPass(p, Instruction::BACKWARD_WEIGHT, 1));
     },
     "goes back with chunk 2, whose values are not there"},
    {"a softmax of other rows than its logits",
     [](Plan& p) {
       NthOp(p, Op::CROSS_ENTROPY_PARTS, 1).mutable_chunk()->set_first_row(0);
     },
     "CROSS_ENTROPY_PARTS: is of other rows than the LINEAR of its chunk", 2},
    {"a chunk without the others' parts",
     [](Plan& p) { NthOp(p, Op::EXCHANGE, 1).clear_chunk(); },
     "CROSS_ENTROPY: does not stand behind the other ops of its chunk", 2},
};

TEST(CheckChunks, NothingIsWrongWithPlansAsTheyAre) {
  for (const int tensor : {1, 2}) {
    const Plan plan = ExamplePlan(ChunkedJob(tensor));
    EXPECT_TRUE(CheckPrograms(plan).ok()) << CheckPrograms(plan);
  }
}

TEST(CheckChunks, EveryFaultIsNamed) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    Plan plan = ExamplePlan(ChunkedJob(fault.tensor));
    fault.plant(plan);
    const absl::Status status = CheckPrograms(plan);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message));
  }
}

}  // namespace
}  // namespace troupe
