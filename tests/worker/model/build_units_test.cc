#include "worker/model/build_units.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "tests/worker/model/model_runner.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr MicroBatchShape kShape = {.sequences = 3, .sequence_length = 7};

std::string Refusal(const ModelSpec& model, const std::vector<Unit>& units) {
  const auto built = BuildUnits(model, units, {.shape = kShape});
  EXPECT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(built.status().message());
}

void ExpectBuilds(const ModelSpec& model, const MicroBatchShape& shape) {
  const auto units = ModelUnits(model, shape);
  ASSERT_TRUE(units.ok()) << units.status();
  const auto built = BuildUnits(model, *units, {.shape = shape});
  EXPECT_TRUE(built.ok()) << built.status();
}

// The bytes that the layers lay out are the bytes that the plan counts, also
// where nothing is a multiple of anything: BuildUnits compares them.
TEST(BuildUnitsTest, LayersAndPlanCountTheSameBytes) {
  for (const int hidden : {1, 6, 15, 24, 48}) {
    for (const int length : {1, 3, 7, 16, 19}) {
      for (const int vocab : {1, 16, 61}) {
        const ModelSpec model = Gpt2Model({.hidden = hidden,
                                           .heads = hidden % 3 == 0 ? 3 : 1,
                                           .intermediate = 2 * hidden + 5,
                                           .vocab = vocab,
                                           .tied = length % 2 == 0});
        const ModelSpec llama = LlamaModel({.hidden = hidden,
                                            .head_dim = 2 * (hidden % 4 + 1),
                                            .intermediate = 2 * hidden + 5,
                                            .vocab = vocab,
                                            .tied = length % 2 == 0,
                                            .bias = vocab == 16});
        for (const ElementType dtype : {F32, BF16}) {
          const MicroBatchShape shape = {.sequences = 1 + length % 3,
                                         .sequence_length = length,
                                         .dtype = dtype};
          ExpectBuilds(model, shape);
          ExpectBuilds(llama, shape);
        }
      }
    }
  }
}

TEST(BuildUnitsTest, OfAPlanTakesTheJobsShape) {
  Plan plan;
  *plan.mutable_job()->mutable_model() = Gpt2Model({});
  plan.mutable_job()->mutable_training()->set_micro_batch_size(3);
  plan.mutable_job()->mutable_training()->set_sequence_length(7);
  const auto units = ModelUnits(plan.job().model(), kShape);
  for (const Unit& unit : *units) *plan.add_units() = unit;
  const auto built = BuildUnits(plan);
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_EQ(built->size(), 4u);
  EXPECT_EQ((*built)[2]->spec().layer(), 1);
  EXPECT_EQ((*built)[3]->spec().kind(), Unit::HEAD);
}

TEST(BuildUnitsTest, RefusesAPlanOfAnotherBuild) {
  const ModelSpec model = Gpt2Model({});
  const std::vector<Unit> good = *ModelUnits(model, kShape);
  std::vector<Unit> units = good;
  units[1].set_stash_bytes(units[1].stash_bytes() + 64);
  EXPECT_THAT(Refusal(model, units),
              HasSubstr("unit 1: the plan gives a BLOCK"));
  units = good;
  units[2].mutable_parameters(2)->set_name("transformer.h.1.attn.qkv.weight");
  EXPECT_THAT(Refusal(model, units),
              HasSubstr("no parameter named transformer.h.1.attn.c_attn"));
  units = good;
  units[3].mutable_tied(0)->set_unit(9);
  EXPECT_THAT(Refusal(model, units), HasSubstr("tied to unit 9"));
  units = good;
  units[1].set_kind(Unit::KIND_UNSPECIFIED);
  EXPECT_THAT(Refusal(model, units), HasSubstr("no unit of kind"));
  ModelSpec other = model;
  other.set_architecture("bert");
  EXPECT_THAT(Refusal(other, good), HasSubstr("no layers for 'bert'"));
}

}  // namespace
}  // namespace troupe
