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

void ExpectBuilds(const ModelSpec& model, const MicroBatchShape& shape) {
  const auto units = ModelUnits(model, shape);
  ASSERT_TRUE(units.ok()) << units.status();
  const auto built = BuildUnits(*units, {.shape = shape});
  EXPECT_TRUE(built.ok()) << built.status();
}

// Also where nothing is a multiple of anything.
TEST(BuildUnitsTest, BuildsModelsOfAnySizes) {
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
        const ModelSpec gpt_neox = GptNeoxModel({.hidden = 12 * hidden,
                                                 .intermediate = 2 * hidden + 5,
                                                 .vocab = vocab,
                                                 .options = vocab == 16});
        const ModelSpec qwen2 =
            LlamaRelativeModel("qwen2", {.hidden = hidden,
                                         .head_dim = 2 * (hidden % 4 + 1),
                                         .intermediate = 2 * hidden + 5,
                                         .vocab = vocab});
        const ModelSpec qwen3 =
            LlamaRelativeModel("qwen3", {.hidden = hidden,
                                         .head_dim = 2 * (hidden % 4 + 1),
                                         .intermediate = 2 * hidden + 5,
                                         .vocab = vocab});
        for (const ElementType dtype : {F32, BF16}) {
          const MicroBatchShape shape = {.sequences = 1 + length % 3,
                                         .sequence_length = length,
                                         .dtype = dtype};
          ExpectBuilds(model, shape);
          ExpectBuilds(llama, shape);
          ExpectBuilds(qwen2, shape);
          ExpectBuilds(qwen3, shape);
          ExpectBuilds(gpt_neox, shape);
        }
      }
    }
  }
}

Plan PlanOf(const ModelSpec& model) {
  Plan plan;
  *plan.mutable_job()->mutable_model() = model;
  plan.mutable_job()->mutable_training()->set_micro_batch_size(3);
  plan.mutable_job()->mutable_training()->set_sequence_length(7);
  const auto units = ModelUnits(model, kShape);
  for (const Unit& unit : units->units) *plan.add_units() = unit;
  for (const UnitTable& table : units->tables) *plan.add_tables() = table;
  *plan.mutable_batch() = units->batch;
  return plan;
}

TEST(BuildUnitsTest, OfAPlanTakesTheJobsShape) {
  const auto built = BuildUnits(PlanOf(Gpt2Model({})), /*rank=*/0);
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_EQ(built->size(), 4u);
  EXPECT_EQ((*built)[2]->spec().layer(), 1);
  EXPECT_EQ((*built)[3]->spec().kind(), Unit::HEAD);
}

TEST(BuildUnitsTest, BuildsUnitsThatWait) {
  UnitList units;
  Unit unit;
  unit.set_kind(Unit::SYNTHETIC);
  units.AppendWithoutOps(unit);
  const auto built = BuildUnits(units, {.shape = kShape});
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)[0]->spec().kind(), Unit::SYNTHETIC);
}

TEST(BuildUnitsTest, RefusesAPlanOfAnotherBuild) {
  Plan plan = PlanOf(Gpt2Model({}));
  plan.mutable_units(1)->set_stash_bytes(plan.units(1).stash_bytes() + 64);
  const absl::Status bytes = BuildUnits(plan, /*rank=*/0).status();
  EXPECT_EQ(bytes.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(bytes.message()),
      HasSubstr(
          "scheduler and worker must be of one build: unit 1: its stash"));

  plan = PlanOf(Gpt2Model({}));
  plan.mutable_units(2)
      ->mutable_parameters(2)
      ->mutable_dims(1)
      ->mutable_sections(0)
      ->set_width(71);
  const absl::Status shape = BuildUnits(plan, /*rank=*/0).status();
  EXPECT_EQ(shape.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(shape.message()),
              HasSubstr("unit 2: parameter transformer.h.1.attn.c_attn.weight "
                        "is F32[24, 261] in the plan"));
}

}  // namespace
}  // namespace troupe
