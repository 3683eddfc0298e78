#include "worker/instructions/move.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/instructions/instructions.h"
#include "worker/rank/tier_port.h"

namespace troupe {
namespace {

// A buffer of the TRAIN program for a copy of unit 1's moments.
int AddCopy(Role& role, Program& program, Tier tier, int copy, int64_t bytes) {
  Slot& slot = *role.add_slots();
  slot.set_item("fetched");
  slot.set_tier(tier);
  slot.set_bytes(bytes);
  Buffer& buffer = *program.add_buffers();
  buffer.set_kind(Buffer::OPTIMIZER_STATE);
  buffer.set_unit(1);
  buffer.set_copy(copy);
  buffer.set_tier(tier);
  buffer.set_bytes(bytes);
  buffer.set_slot(role.slots_size() - 1);
  return program.buffers_size() - 1;
}

void AddMove(Program& program, Instruction::Kind kind, int from, int to) {
  Instruction& move = *program.add_instructions();
  move.set_kind(kind);
  move.set_unit(1);
  for (const auto& [part, buffer] :
       {std::pair(Instruction::FROM, from), std::pair(Instruction::TO, to)}) {
    Instruction::Operand& operand = *move.add_operands();
    operand.set_part(part);
    operand.set_buffer(buffer);
  }
}

// Moments rest on the disk; at the program's end those of unit 1 come up to the
// device, and go down again.
void AddMoves(Plan& plan) {
  RestIn(NVME, {"optimizer_moments"})(plan);
  Role& role = *plan.mutable_roles(0);
  for (Program& program : *role.mutable_programs()) {
    if (program.kind() != Program::TRAIN) continue;
    int rests = -1;
    for (int i = 0; i < program.buffers_size(); ++i) {
      const Buffer& buffer = program.buffers(i);
      if (buffer.kind() == Buffer::OPTIMIZER_STATE && buffer.unit() == 1) {
        rests = i;
      }
    }
    CHECK_GE(rests, 0);
    const int64_t bytes = program.buffers(rests).bytes();
    const int host = AddCopy(role, program, HOST, 1, bytes);
    const int device = AddCopy(role, program, DEVICE, 2, bytes);
    AddMove(program, Instruction::FETCH, rests, host);
    AddMove(program, Instruction::FETCH, host, device);
    AddMove(program, Instruction::EVICT, device, host);
    AddMove(program, Instruction::EVICT, host, rests);
  }
}

class MoveTest : public testing::Test {
 protected:
  absl::Status RunMoveAt(int from_end) {
    const Program& program = rank_.program();
    return RunInstruction(
        {rank_.state(), program,
         program.instructions(program.instructions_size() - from_end)});
  }
  std::string Resting() {
    const Buffer& buffer =
        *FindResident(rank_.state().role(), Buffer::OPTIMIZER_STATE, 1);
    EXPECT_EQ(buffer.copy(), 0);
    std::string bytes(buffer.bytes(), 'x');
    TierPort port(rank_.state().device, &rank_.state().memory);
    CHECK_OK(port.Read(rank_.state().memory.At(buffer, 1), buffer.bytes(),
                       bytes.data()));
    return bytes;
  }
  char* CopyIn(int from_end) {
    const Program& program = rank_.program();
    const Buffer& buffer = program.buffers(program.buffers_size() - from_end);
    return rank_.state().memory.At(buffer, 1).memory();
  }

  SmallRank rank_{SmallJob(), {.change = AddMoves}};
};

TEST_F(MoveTest, ComesUpFromTheDiskAndGoesDownAgain) {
  const std::string before = Resting();
  EXPECT_EQ(before, std::string(before.size(), '\0'));
  std::string changed(before.size(), '\0');
  std::iota(changed.begin(), changed.end(), 0);
  ASSERT_TRUE(RunMoveAt(4).ok());
  ASSERT_TRUE(RunMoveAt(3).ok());
  EXPECT_EQ(std::string(CopyIn(1), before.size()), before);
  std::copy(changed.begin(), changed.end(), CopyIn(1));
  ASSERT_TRUE(RunMoveAt(2).ok());
  EXPECT_EQ(Resting(), before) << "not yet";
  ASSERT_TRUE(RunMoveAt(1).ok());
  EXPECT_EQ(Resting(), changed);
}

TEST_F(MoveTest, TheHostsCopyIsKnownToTheDisk) {
  // All that moves between a disk and memory goes from there and comes there.
  const auto& moved = rank_.state().memory.MovedByNvme();
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].data(), CopyIn(2));
}

}  // namespace
}  // namespace troupe
