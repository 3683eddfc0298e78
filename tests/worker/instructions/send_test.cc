#include "worker/instructions/send.h"

#include "gtest/gtest.h"
#include "tests/worker/instructions/two_ranks.h"
#include "worker/collective/communicator.h"

namespace troupe {
namespace {

TEST(Send, ItsBytesArriveAtThePeer) {
  RunOnTwoRanks([](SmallRank& rank, int peer) {
    const int64_t bytes = rank.Find(Buffer::ACTIVATION, 1, 0).bytes();
    char* const memory = rank.Memory<char>(Buffer::ACTIVATION, 1, 0);
    if (peer == 7) {
      for (int64_t i = 0; i < bytes; ++i) memory[i] = static_cast<char>(i * 7);
      const Instruction send = TransferInstruction(
          rank, {.kind = Instruction::SEND, .unit = 1, .peer = peer});
      EXPECT_TRUE(RunSend({rank.state(), rank.program(), send}).ok());
      return;
    }
    ASSERT_TRUE(rank.state()
                    .communicators[0]
                    ->Recv({.data = memory, .elements = bytes}, 0, {})
                    .ok());
    for (int64_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(memory[i], static_cast<char>(i * 7)) << i;
    }
  });
}

}  // namespace
}  // namespace troupe
