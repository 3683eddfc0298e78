#include "worker/instructions/recv.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/worker/instructions/two_ranks.h"
#include "worker/collective/communicator.h"

namespace troupe {
namespace {

TEST(Recv, FillsTheBufferWithWhatThePeerSends) {
  RunOnTwoRanks([](SmallRank& rank, int peer) {
    const int64_t bytes = rank.Find(Buffer::GRADIENT, 2, 0).bytes();
    char* const memory = rank.Memory<char>(Buffer::GRADIENT, 2, 0);
    if (peer == 7) {
      for (int64_t i = 0; i < bytes; ++i) memory[i] = static_cast<char>(i * 7);
      ASSERT_TRUE(rank.state()
                      .communicators[0]
                      ->Send({.data = memory, .elements = bytes}, 1, {})
                      .ok());
      return;
    }
    const Instruction recv = TransferInstruction(
        rank,
        {.kind = Instruction::RECV, .gradient = true, .unit = 2, .peer = peer});
    ASSERT_TRUE(RunRecv({rank.state(), rank.program(), recv}).ok());
    for (int64_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(memory[i], static_cast<char>(i * 7)) << i;
    }
  });
}

TEST(Recv, APeerThatGivesUpIsNamedWithWhatDidNotCome) {
  RunOnTwoRanks([](SmallRank& rank, int peer) {
    if (peer == 7) return;  // goes, without having sent anything
    const Instruction recv = TransferInstruction(
        rank, {.kind = Instruction::RECV, .unit = 1, .peer = peer});
    const absl::Status status = RunRecv({rank.state(), rank.program(), recv});
    EXPECT_FALSE(status.ok());
    for (const char* part :
         {"activations of unit 1, micro-batch 0", "rank 3"}) {
      EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
    }
  });
}

}  // namespace
}  // namespace troupe
