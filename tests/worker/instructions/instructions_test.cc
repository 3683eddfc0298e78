#include "worker/instructions/instructions.h"

#include <set>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

TEST(Instructions, EveryKindHasOneHandler) {
  std::set<int> kinds;
  for (const InstructionHandler& handler : InstructionHandlers()) {
    EXPECT_TRUE(kinds.insert(handler.kind).second);
    EXPECT_NE(handler.run, nullptr);
  }
  for (int kind = 1; kind < Instruction::Kind_ARRAYSIZE; ++kind) {
    EXPECT_EQ(kinds.count(kind), Instruction::Kind_IsValid(kind) ? 1u : 0u)
        << Instruction::Kind_Name(static_cast<Instruction::Kind>(kind));
  }
}

TEST(Instructions, AnUnknownKindIsUnimplemented) {
  SmallRank rank(SmallJob(), {});
  Instruction instruction;
  EXPECT_TRUE(absl::IsUnimplemented(
      RunInstruction({rank.state(), rank.program(), instruction})));
}

}  // namespace
}  // namespace troupe
