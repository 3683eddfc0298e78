// The tensors of a batch, cut as their dims are: an image of height, width and
// channels lacks nothing but a source.
#include "proto/plan/batch.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_batch.h"
#include "proto/plan/check_layouts.h"
#include "proto/plan/check_units.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_list.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/cut_units.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

// Two units: pixels become columns, and a head reads targets.
UnitList ImageUnits() {
  const MicroBatchShape shape = {.sequences = 4, .sequence_length = 8};
  const Dim hidden = DimOf({{Dim::HIDDEN, 16}});
  BatchTensor image;
  image.set_source("images");
  image.mutable_tensor()->set_name("image");
  image.mutable_tensor()->set_dtype(F32);
  for (const auto& [kind, count] : {std::pair(Dim::BATCH, 4),
                                    {Dim::HEIGHT, 2},
                                    {Dim::WIDTH, 4},
                                    {Dim::CHANNELS, 3}}) {
    *image.mutable_tensor()->add_dims() = DimOf({{kind, count}});
  }
  UnitBuilder pixels(Unit::EMBEDDING, {.index = 0, .shape = shape});
  pixels.Output(pixels.Linear({.x = pixels.Batch(image),
                               .projections = {{"pixels", hidden}},
                               .output = "columns",
                               .init_std = 0.02}));
  UnitBuilder head(Unit::HEAD, {.index = 1, .shape = shape});
  head.Loss({.x = head.Norm({.x = head.Input(hidden),
                             .name = "n",
                             .output = "n",
                             .epsilon = 1e-5})
                      .y,
             .weight = "w",
             .vocabulary = 10,
             .init_std = 0.02});
  UnitList units;
  units.Append(std::move(pixels));
  units.Append(std::move(head));
  return units;
}

// Cut by samples over two ranks, which load all of them, or their own.
Plan ImagePlan(bool loaded) {
  ParallelismSpec parallelism;
  parallelism.set_batch(2);
  std::vector<AxisRules> rules = RulesFor(parallelism);
  rules.at(0).rules.at(0).loaded = loaded;
  UnitList units = ImageUnits();
  CutUnits(rules, units);
  Plan plan;
  *plan.mutable_job()->mutable_parallelism() = parallelism;
  plan.mutable_job()->mutable_training()->set_micro_batch_size(4);
  plan.mutable_job()->mutable_training()->set_sequence_length(8);
  for (Axis& axis : AxesOf(parallelism)) {
    *plan.mutable_mesh()->add_axes() = std::move(axis);
  }
  for (const Unit& unit : units.units) *plan.add_units() = unit;
  for (const UnitTable& table : units.tables) *plan.add_tables() = table;
  *plan.mutable_batch() = units.batch;
  return plan;
}

TEST(Batch, AnImageIsPlannedAndLacksASourceOnly) {
  for (const bool loaded : {false, true}) {
    const Plan plan = ImagePlan(loaded);
    EXPECT_EQ(CheckUnits(plan), absl::OkStatus());
    EXPECT_EQ(CheckLayouts(plan), absl::OkStatus());
    EXPECT_EQ(CheckBatch(plan).message(),
              "tensor image of the batch comes from images, which is no source "
              "of the job's data; there are tokens, next_tokens, "
              "document_starts, positions");
    // 2 x 4 x 3 floats of a sample, then 8 ids of each.
    const int64_t samples = loaded ? 2 : 4;
    EXPECT_THAT(BatchOffsets(plan.batch()),
                ElementsAre(0, samples * 96, samples * (96 + 32)));
    const LoadedPiece second = LoadedBy(plan.batch(0), {&plan.mesh(), 1});
    EXPECT_EQ(second.samples, (Range{4 - samples, 4}));
    ASSERT_EQ(second.dims.size(), 3u);
    EXPECT_THAT(second.dims[1].runs, ElementsAre(Range{0, 4}));
    EXPECT_TRUE(ReadsBatch(plan, plan.units(0)));
  }
}

}  // namespace
}  // namespace troupe
