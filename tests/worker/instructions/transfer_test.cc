#include "worker/instructions/transfer.h"

#include "gtest/gtest.h"
#include "tests/worker/instructions/two_ranks.h"

namespace troupe {
namespace {

TEST(Transfer, IsAnActivationOrAGradientAsItSays) {
  RunOnTwoRanks([](SmallRank& rank, int peer) {
    const Instruction activations = TransferInstruction(
        rank, {.kind = Instruction::SEND, .unit = 1, .peer = peer});
    const Transfer out =
        TransferOf({rank.state(), rank.program(), activations});
    EXPECT_EQ(out.data.data, rank.Memory<void>(Buffer::ACTIVATION, 1, 0));
    EXPECT_EQ(
        out.data.bytes(),
        static_cast<size_t>(rank.state().plan->units(1).activation_bytes()));
    EXPECT_EQ(out.options.name, "activations of unit 1, micro-batch 0");
    // Of the ranks 3 and 7: their places in the group.
    EXPECT_EQ(out.peer, peer == 7 ? 1 : 0);

    const Instruction gradients = TransferInstruction(
        rank,
        {.kind = Instruction::RECV, .gradient = true, .unit = 1, .peer = peer});
    const Transfer back = TransferOf({rank.state(), rank.program(), gradients});
    EXPECT_EQ(back.data.data, rank.Memory<void>(Buffer::GRADIENT, 1, 0));
    EXPECT_EQ(back.options.name, "gradients of unit 1, micro-batch 0");
  });
}

}  // namespace
}  // namespace troupe
