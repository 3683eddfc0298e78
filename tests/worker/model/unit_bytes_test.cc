#include "worker/model/unit_bytes.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(UnitBytesTest, NamesWhatDiffers) {
  Unit unit;
  unit.set_kind(Unit::BLOCK);
  unit.set_activation_bytes(64);
  unit.set_stash_bytes(128);
  unit.set_weight_stash_bytes(192);
  unit.set_workspace_bytes(256);
  const UnitBytes bytes = {
      .activation = 64, .stash = 128, .weight_stash = 192, .workspace = 256};
  EXPECT_TRUE(CheckUnitBytes(unit, bytes).ok());
  UnitBytes other = bytes;
  other.weight_stash = 128;
  const absl::Status status = CheckUnitBytes(unit, other);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the plan gives a BLOCK unit 192 bytes of weight stash, but it "
            "needs 128; scheduler and worker must be of one build");
}

}  // namespace
}  // namespace troupe
