// Plans whose ranks hand keys and values around, broken in the ways in which
// rings can be: every fault is found, and named.
#include "proto/plan/check_rings.h"

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

constexpr auto kTrain = Program::TRAIN;
// Two replicas of rings of four.
JobSpec RingJob() {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_parallelism()->set_context(4);
  job.mutable_parallelism()->set_context_method("ring");
  return job;
}

Op& Part(Plan& plan, int hop) { return NthOp(plan, Op::ATTENTION_PART, hop); }

// What the tables say.
const PlantedFault kFaults[] = {
    {"a hop left out",
     [](Plan& p) {
       InputOf(Part(p, 2), "y before") = InputOf(Part(p, 1), "y before");
       InputOf(Part(p, 2), "logsumexp before") =
           InputOf(Part(p, 1), "logsumexp before");
       const int left_out = Nth(p, Op::ATTENTION_PART, 1);
       TableOf(p).mutable_ops()->DeleteSubrange(left_out, 1);
     },
     "is the last of 3 parts, but keys are on 4 ranks along context"},
    {"the keys of one rank twice",
     [](Plan& p) {
       const int again = InputOf(Part(p, 1), "kv").tensor();
       InputOf(Part(p, 2), "kv").set_tensor(again);
     },
     "takes the keys of 1 ranks before for those of 2 before, where those of 2 "
     "are due"},
    {"parts that take each other's keys for their own",
     [](Plan& p) { Part(p, 1).mutable_hop()->set_number(3); },
     "takes the keys of 1 ranks before for those of 3 before, where those of 1 "
     "are due"},
    {"a part that begins anew",
     [](Plan& p) {
       InputOf(Part(p, 2), "y before") = InputOf(Part(p, 1), "y before");
     },
     "does not go on from the part before"},
    {"others' queries",
     [](Plan& p) {
       Op& shift = NthOp(p, Op::EXCHANGE, 0);
       for (int hop = 0; hop < 4; ++hop) {
         InputOf(Part(p, hop), "q").set_tensor(shift.outputs(0).tensor());
       }
     },
     "ATTENTION_PART has queries and keys that are not both cut"},
    {"other queries at a hop",
     [](Plan& p) {
       Op& shift = NthOp(p, Op::EXCHANGE, 0);
       InputOf(Part(p, 3), "q").set_tensor(shift.outputs(0).tensor());
     },
     "ATTENTION_PART does not go on from the part before"},
    {"pieces one behind the other, not one from either end",
     [](Plan& p) {
       TensorSpec& q = TensorOf(p, InputOf(Part(p, 0), "q"));
       q.mutable_dims(1)->mutable_sections(0)->mutable_cuts(0)->set_zigzag(
           false);
     },
     "not both cut in zigzag order along context"},
    {"a last part that does not make the whole",
     [](Plan& p) {
       const int other = InputOf(Part(p, 3), "y before").tensor();
       for (int hop = 0; hop < 4; ++hop) {
         Part(p, hop).mutable_backward_inputs(0)->set_tensor(other);
       }
     },
     "is the last part, but does not make the whole"},
    {"brought back twice",
     [](Plan& p) {
       *NthOp(p, Op::RETURN, 1).mutable_inputs(0) =
           NthOp(p, Op::RETURN, 0).inputs(0);
     },
     "as another op does"},
    {"brought back from who has it no more",
     [](Plan& p) {
       const Op::Operand going_on = NthOp(p, Op::FORK, 1).outputs(1);
       NthOp(p, Op::RETURN, 0).mutable_inputs(1)->set_tensor(going_on.tensor());
     },
     "which is not there"},
};

TEST(CheckRings, NamesTheFault) {
  for (const PlantedFault& fault : kFaults) {
    Plan plan = ExamplePlan(RingJob());
    ASSERT_EQ(CheckRings(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckRings(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

const PlantedFault kSelfAttentionFaults[] = {
    {"scores of a rank's keys twice",
     [](Plan& p) {
       const int again = InputOf(NthOp(p, Op::SCORES, 1), "k").tensor();
       InputOf(NthOp(p, Op::SCORES, 2), "k").set_tensor(again);
     },
     "SCORES takes the keys of 1 ranks before for those of 2 before"},
    {"values left out",
     [](Plan& p) {
       InputOf(NthOp(p, Op::WEIGHTED_VALUES, 2), "y before") =
           InputOf(NthOp(p, Op::WEIGHTED_VALUES, 1), "y before");
       const int left_out = Nth(p, Op::WEIGHTED_VALUES, 1);
       TableOf(p).mutable_ops()->DeleteSubrange(left_out, 1);
     },
     "WEIGHTED_VALUES is the last of 3 parts, but keys are on 4 ranks"},
    {"scores that forget those before",
     [](Plan& p) {
       InputOf(NthOp(p, Op::SCORES, 2), "y before") =
           InputOf(NthOp(p, Op::SCORES, 1), "y before");
     },
     "SCORES does not go on from the part before"},
    {"columns that are not one run",
     [](Plan& p) {
       TensorSpec& k = TensorOf(p, InputOf(NthOp(p, Op::SCORES, 1), "k"));
       k.mutable_dims(1)->mutable_sections(0)->mutable_cuts(0)->set_zigzag(
           true);
     },
     "SCORES has keys in zigzag order, which are not one run"},
};

TEST(CheckRings, NamesTheFaultOfRingSelfAttention) {
  JobSpec job = RingJob();
  job.mutable_parallelism()->set_context_method("ring_self_attention");
  EXPECT_EQ(CheckPrograms(ExamplePlan(job)), absl::OkStatus());
  for (const PlantedFault& fault : kSelfAttentionFaults) {
    Plan plan = ExamplePlan(job);
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckRings(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

TEST(CheckRings, WantsAllKeysWhereThereIsNoRing) {
  JobSpec job = RingJob();
  job.mutable_parallelism()->set_context(2);
  job.mutable_parallelism()->set_context_method("ulysses");
  Plan plan = ExamplePlan(job);
  EXPECT_EQ(CheckRings(plan), absl::OkStatus());
  NthOp(plan, Op::ATTENTION, 0)
      .mutable_inputs(0)
      ->set_tensor(NthOp(plan, Op::PACK, 0).inputs(0).tensor());
  EXPECT_THAT(std::string(CheckRings(plan).message()),
              HasSubstr("ATTENTION has the keys of some positions only"));
}

const PlantedFault kLayoutFaults[] = {
    {"a ring the other way around",
     [](Plan& p) {
       const Op& first = NthOp(p, Op::EXCHANGE, 0);
       TensorSpec& moved = TensorOf(p, first.outputs(0));
       moved.mutable_layout()->mutable_axes(0)->set_shift(3);
     },
     "does SHIFT and SHIFT in backward, which does not make SHARD(1) of 3 "
     "ranks before of SHARD(1)"},
    {"one that comes back another way than its values",
     [](Plan& p) {
       NthOp(p, Op::EXCHANGE, 1)
           .mutable_exchange()
           ->set_backward(COLLECTIVE_UNSPECIFIED);
     },
     "does SHIFT and COLLECTIVE_UNSPECIFIED in backward"},
    {"a value brought back over two ranks",
     [](Plan& p) {
       const int far = NthOp(p, Op::RETURN, 1).inputs(1).tensor();
       NthOp(p, Op::RETURN, 0).mutable_inputs(1)->set_tensor(far);
     },
     "RETURN brings back SHARD(1) from SHARD(1) of 2 ranks before by SHIFT"},
};

TEST(CheckLayouts, NamesTheFaultOfRings) {
  for (const PlantedFault& fault : kLayoutFaults) {
    Plan plan = ExamplePlan(RingJob());
    ASSERT_EQ(CheckLayouts(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckLayouts(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

// The n-th exchange of a rank's step, forward or backward.
int NthExchange(const Program& program, bool backward, int n) {
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    if (instruction.kind() == Instruction::EXCHANGE &&
        instruction.exchange().backward() == backward && n-- == 0) {
      return i;
    }
  }
  ADD_FAILURE() << "no such exchange";
  return 0;
}

const PlantedFault kProgramFaults[] = {
    {"a hop that a rank lacks",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Remove(program, NthExchange(program, /*backward=*/false, 1));
     },
     "of unit 1 is missing for micro-batch 0"},
    {"keys that do not come back",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Remove(program, NthExchange(program, /*backward=*/true, 0));
     },
     "backward, of unit 2 is missing for micro-batch 0"},
    {"a hop that gathers",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       program.mutable_instructions(NthExchange(program, false, 0))
           ->mutable_exchange()
           ->set_collective(ALL_GATHER);
     },
     "is ALL_GATHER of F32, where its unit needs SHIFT of F32"},
    {"keys brought back to where others are",
     [](Plan& p) {
       Program& program = ProgramOf(p, 1, kTrain);
       Instruction& back =
           *program.mutable_instructions(NthExchange(program, true, 0));
       for (Instruction::Operand& operand : *back.mutable_operands()) {
         if (operand.part() == Instruction::TO) {
           operand.set_offset(operand.offset() + 64);
         }
       }
     },
     "its operands are not where its unit's tensors lie"},
};

TEST(CheckPrograms, NamesTheFaultOfRings) {
  ExpectProgramFaultsAreNamed(RingJob(), kProgramFaults);
}

}  // namespace
}  // namespace troupe
