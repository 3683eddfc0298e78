// Tensor parallelism in three dimensions (arXiv 2105.14450): q x q x q ranks
// have a box of each product's [rows, inner] x [inner, columns]. Along x lie
// pieces of the batch, along y of the columns within attention, the MLP and the
// logits, along z of the hidden ones. Of a tensor that y does not cut by
// columns it cuts rows, and so does z, so that all q^3 ranks have an even piece
// of each:
//
//   residuals, norms   rows: x, y   columns: z
//   within             rows: x, z   columns: y
//
// What leads from one to the other gathers rows along one axis and scatters the
// sums of its product along the other, and the next product does the opposite.
// Weights, cut by y and z, rest in slices over x (zero.cc), as the paper has
// them.
#include "scheduler/layouts/blocks.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/split_norms.h"

namespace troupe {
namespace {

constexpr BlockShape kCube = {.method = "3d", .sides = 3, .name = "cube"};
constexpr DimRule kRows = {.kind = Dim::BATCH,
                           .field = "training.micro_batch_size"};

RowAxis RowsOf3D() {
  DimRule loaded = kRows;
  loaded.loaded = true;
  return {.name = "tensor_x",
          .rules = {loaded},
          .resting = Resting::kSliced,
          .on_one_host = true};
}

RowAxis Inner() {
  std::vector<DimRule> rules = RulesOfInnerColumns();
  rules.push_back(kRows);
  return {.name = "tensor_y", .rules = rules, .on_one_host = true};
}

RowAxis Hidden() {
  return {.name = "tensor_z",
          .rules = {{.kind = Dim::HIDDEN, .field = "model.hidden_size"}, kRows},
          .rewrite = SplitNorms,
          .on_one_host = true};
}

std::vector<AxisExtent> SidesOf3D(const ParallelismSpec& parallelism) {
  return std::vector<AxisExtent>(
      kCube.sides, SideOf(parallelism.tensor(), /*layers=*/1, kCube.sides));
}

absl::Status CheckIsCube(ParallelismSpec& parallelism) {
  return CheckIsBlock(kCube, parallelism.tensor());
}

void TryCube(const ParallelismSpec& parallelism,
             std::vector<ParallelismSpec>& ways) {
  if (IsPower(parallelism.tensor(), kCube.sides)) ways.push_back(parallelism);
}

}  // namespace

LayoutRow Tensor3D() {
  return {.field = "tensor",
          .method = kCube.method,
          .axes = {RowsOf3D(), Inner(), Hidden()},
          .sizes = SidesOf3D,
          .resolve = CheckIsCube,
          .examples = "8, 27 or 64",
          .takes_graphs = false,
          .no_sample =
              "ranks write a text with units that are cut in one "
              "dimension",
          .tries = TryCube,
          .fewer = AllOrOne};
}

}  // namespace troupe
