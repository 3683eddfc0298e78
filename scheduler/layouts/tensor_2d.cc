// Tensor parallelism in two dimensions (Optimus, arXiv 2104.05343): q x q ranks
// have a block each of activations and of weights. Along the axis of rows lie
// pieces of the batch, and of a weight its rows; along the axis of columns lie
// columns: hidden ones, heads, those of the MLP. Both sides of a product are
// cut by columns then, so that it is made panel by panel (panels.h), each
// broadcast along one axis and the other.
//
// What is no product of two such blocks needs no panels: a norm adds its
// row sums over columns, attention has some heads of some sequences. Tables of
// tokens are cut by their rows along the axis of rows, too, and each rank looks
// up what it has for all samples of that axis: rows of activations move there,
// which are fewer bytes than panels of the table. The logits are columns along
// the axis of rows, and samples along that of columns.
#include "scheduler/layouts/blocks.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/panels.h"
#include "scheduler/layouts/split_norms.h"

namespace troupe {
namespace {

constexpr BlockShape kSquare = {.method = "2d", .sides = 2, .name = "square"};
constexpr DimRule kSamples = {.kind = Dim::BATCH,
                              .field = "training.micro_batch_size"};

RowAxis Columns() {
  std::vector<DimRule> rules = {
      {.kind = Dim::HIDDEN, .field = "model.hidden_size"}};
  for (const DimRule& rule : RulesOfInnerColumns()) {
    if (rule.kind != Dim::VOCABULARY) rules.push_back(rule);
  }
  rules.push_back(kSamples);
  return {.name = "tensor_column",
          .rules = rules,
          .prepare = MultiplyInPanels,
          .rewrite = SplitNorms,
          .on_one_host = true};
}

RowAxis RowsOf2D() {
  return {.name = "tensor_row",
          .rules = {{.kind = Dim::VOCABULARY,
                     .field = "model.vocab_size",
                     .pads = true},
                    // Which other axes cut as columns, in as many pieces.
                    {.kind = Dim::INNER},
                    kSamples},
          .on_one_host = true};
}

std::vector<AxisExtent> SidesOf(const ParallelismSpec& parallelism) {
  const AxisExtent side = SideOf(parallelism.tensor(), /*layers=*/1, 2);
  return {side, side};
}

absl::Status CheckIsSquare(ParallelismSpec& parallelism) {
  return CheckIsBlock(kSquare, parallelism.tensor());
}

void TrySquare(const ParallelismSpec& parallelism,
               std::vector<ParallelismSpec>& ways) {
  if (IsPower(parallelism.tensor(), 2)) ways.push_back(parallelism);
}

}  // namespace

std::vector<RowAxis> AxesOfSquare() { return {RowsOf2D(), Columns()}; }

LayoutRow Tensor2D() {
  return {.field = "tensor",
          .method = kSquare.method,
          .axes = AxesOfSquare(),
          .sizes = SidesOf,
          .resolve = CheckIsSquare,
          .examples = "4, 9 or 16",
          .takes_graphs = false,
          .no_sample =
              "ranks write a text with units that are cut in one "
              "dimension",
          .tries = TrySquare,
          .fewer = AllOrOne};
}

}  // namespace troupe
