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
#include "proto/plan/axes.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/split_norms.h"

namespace troupe {
namespace {

constexpr DimRule kRows = {.kind = Dim::BATCH,
                           .field = "training.micro_batch_size"};

}  // namespace

LayoutRow Tensor3DRows() {
  DimRule loaded = kRows;
  loaded.loaded = true;
  return {.name = "tensor_3d, rows",
          .axis = "tensor_x",
          .used = Is3D,
          .rules = {loaded}};
}

LayoutRow Tensor3DInner() {
  std::vector<DimRule> rules = RulesOfInnerColumns();
  rules.push_back(kRows);
  return {.name = "tensor_3d, inner columns",
          .axis = "tensor_y",
          .used = Is3D,
          .rules = rules};
}

LayoutRow Tensor3DHidden() {
  return {.name = "tensor_3d, hidden columns",
          .axis = "tensor_z",
          .used = Is3D,
          .rules = {{.kind = Dim::HIDDEN, .field = "model.hidden_size"}, kRows},
          .rewrite = SplitNorms};
}

}  // namespace troupe
