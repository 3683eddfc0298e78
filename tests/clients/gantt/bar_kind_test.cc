#include "clients/gantt/bar_kind.h"

#include <set>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(BarKind, EveryKindHasANameAndALetterOfItsOwn) {
  std::set<char> letters;
  std::set<std::string> names;
  for (const BarKind kind : kBarKinds) {
    letters.insert(NameOf(kind).letter);
    names.insert(NameOf(kind).name);
  }
  EXPECT_EQ(letters.size(), std::size(kBarKinds));
  EXPECT_EQ(names.size(), std::size(kBarKinds));
}

TEST(BarKind, InstructionsThatLookAlike) {
  EXPECT_EQ(KindOf(Instruction::SEND), BarKind::kTransfer);
  EXPECT_EQ(KindOf(Instruction::RECV), BarKind::kTransfer);
  EXPECT_EQ(KindOf(Instruction::REDUCE_SCALARS), BarKind::kCollective);
  EXPECT_EQ(KindOf(Instruction::GRAD_NORM), BarKind::kStep);
  EXPECT_EQ(KindOf(Instruction::FETCH), BarKind::kMove);
  EXPECT_EQ(KindOf(Instruction::EVICT), BarKind::kMove);
  EXPECT_EQ(KindOf(Instruction::SNAPSHOT), BarKind::kOther);
  // Whatever comes later is drawn too.
  EXPECT_EQ(KindOf(Instruction::KIND_UNSPECIFIED), BarKind::kOther);
}

TEST(BarKind, PassesAreForwardAndBackward) {
  EXPECT_TRUE(IsPass(KindOf(Instruction::FORWARD)));
  EXPECT_TRUE(IsPass(KindOf(Instruction::RECOMPUTE)));
  EXPECT_TRUE(IsPass(KindOf(Instruction::BACKWARD_INPUT)));
  EXPECT_TRUE(IsPass(KindOf(Instruction::BACKWARD_WEIGHT)));
  EXPECT_FALSE(IsPass(KindOf(Instruction::STEP)));
}

}  // namespace
}  // namespace troupe
