#include "worker/model/decoding_unit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "tests/worker/model/numeric.h"
#include "tests/worker/model/small_units.h"
#include "tests/worker/model/unit_harness.h"

namespace troupe {
namespace {

using Piece = std::pair<int64_t, int64_t>;  // position, count

class DecodingUnitTest : public testing::TestWithParam<SmallUnit> {
 protected:
  DecodingUnitTest() : unit_(GetParam().units(0), GetParam().index) {
    unit_.batch = SmallBatch();
    auto decoding = DecodingUnit::Create(unit_.units, GetParam().index);
    CHECK_OK(decoding.status());
    decoding_ = *std::move(decoding);
    unit_.Forward({.training = false});
  }

  // Columns of the tensor that lies there.
  int64_t Width(TensorSpec::Home home) const {
    return unit_.BytesAt(home) / 4 / (kSmallSequences * kSmallLength);
  }

  void Decode(const std::vector<Piece>& pieces, std::vector<float>& output) {
    DeviceMemory cache(*unit_.device, decoding_->CacheBytes(kSmallPositions));
    DeviceMemory workspace(*unit_.device, decoding_->workspace_bytes());
    const int64_t output_width = Width(TensorSpec::OUTPUT);
    for (const auto& [position, count] : pieces) {
      void* input =
          unit_.input.get() == nullptr
              ? nullptr
              : unit_.input.floats() + Width(TensorSpec::INPUT) * position;
      CHECK_OK(
          decoding_->Decode(*unit_.device, kSmallPositions,
                            {.position = position,
                             .count = count,
                             .tokens = unit_.batch.data() + position,
                             .input = input,
                             .output = output.data() + output_width * position,
                             .cache = cache.get(),
                             .workspace = workspace.get(),
                             .parameters = unit_.parameters.get(),
                             .tied_parameters = unit_.tied_parameters.get()}));
    }
  }

  UnitHarness unit_;
  std::unique_ptr<DecodingUnit> decoding_;
};

TEST_P(DecodingUnitTest, InPiecesItIsTheForwardOfTheWhole) {
  for (const auto& pieces :
       std::vector<std::vector<Piece>>{{{0, 4}}, {{0, 2}, {2, 1}, {3, 1}}}) {
    if (unit_.spec.kind() == Unit::HEAD) {
      // The logits end the stash, each row on a cache line of bf16.
      constexpr int64_t kRows = kSmallSequences * kSmallLength;
      const float* last = unit_.stash.floats() + unit_.stash.span().size() -
                          (kRows - kSmallLength + 1) * 32;  // of row 3
      std::vector<float> logits(kSmallVocabulary);
      Decode(pieces, logits);
      EXPECT_LT(RelativeError(logits, absl::MakeSpan(last, kSmallVocabulary)),
                1e-5);
    } else {
      std::vector<float> output(kSmallLength * Width(TensorSpec::OUTPUT));
      Decode(pieces, output);
      EXPECT_LT(
          RelativeError(output, unit_.output.span().subspan(0, output.size())),
          1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Units, DecodingUnitTest,
                         testing::ValuesIn(SmallUnits()),
                         [](const auto& info) { return info.param.name; });

// Of two key-value heads, not of the four of queries.
TEST(DecodingCacheTest, HoldsKeysAndValuesOfTheirOwnHeads) {
  for (const SmallUnit& small : SmallUnits()) {
    const auto unit = DecodingUnit::Create(small.units(0), small.index);
    ASSERT_TRUE(unit.ok()) << unit.status();
    if (small.name == "LlamaBlock") {
      EXPECT_EQ((*unit)->CacheBytes(8), 8 * 2 * (2 * 4) * 4);
    } else if (small.name == "Gpt2Block") {
      EXPECT_EQ((*unit)->CacheBytes(8), 8 * 2 * 6 * 4);
    } else if (small.index == 0) {
      EXPECT_EQ((*unit)->CacheBytes(8), 0);
    }
  }
}

TEST(DecodingUnitErrorTest, ASyntheticModelHasNoText) {
  UnitList units;
  Unit unit;
  unit.set_kind(Unit::SYNTHETIC);
  units.AppendWithoutOps(unit);
  const absl::Status status = DecodingUnit::Create(units, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "unit 0 computes nothing: a SYNTHETIC unit has no text to go on "
            "with");
}

}  // namespace
}  // namespace troupe
