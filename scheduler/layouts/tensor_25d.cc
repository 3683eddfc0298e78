// Tensor parallelism in two and a half dimensions (Tesseract, arXiv
// 2105.14500): several layers of q x q ranks, each with a piece of the batch of
// its own, do what those of two dimensions do (tensor_2d.cc). All layers have
// the same weights, and sum their gradients, once a step.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/plan/fields.h"
#include "proto/plan/plan_limits.h"
#include "scheduler/layouts/blocks.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {
namespace {

constexpr char kDepth[] = "tensor_depth";

// How many layers of a square of 4 ranks or more each `ranks` ranks could be,
// two or more; the fewest first.
std::vector<int> DepthsOf(int ranks) {
  std::vector<int> depths;
  for (int side = Root(std::max(ranks / 2, 1), 2); side >= 2; --side) {
    if (ranks % (side * side) == 0) depths.push_back(ranks / (side * side));
  }
  return depths;
}

int DepthOf(const ParallelismSpec& parallelism) {
  if (parallelism.has_tensor_depth()) {
    return std::max(parallelism.tensor_depth(), 1);
  }
  const std::vector<int> depths = DepthsOf(parallelism.tensor());
  return depths.empty() ? 1 : depths.front();
}

std::string RanksWithDepth(int ranks, int depth) {
  return depth == 1
             ? absl::StrCat(ranks, " with parallelism.tensor_method: 2d")
             : absl::StrCat(ranks, " with parallelism.tensor_depth: ", depth);
}
std::string SideText(const SizeField& field, int size) {
  if (size > 1) return RanksWithDepth(field.ValueFor(size), field.ranks);
  return absl::StrCat(field.ranks, " without parallelism.tensor_method");
}
std::string DepthText(const SizeField& field, int size) {
  return RanksWithDepth(field.ValueFor(size), size);
}

std::vector<AxisExtent> SizesOf(const ParallelismSpec& parallelism) {
  const int depth = DepthOf(parallelism);
  AxisExtent side = SideOf(parallelism.tensor(), depth, 2);
  side.field.text = SideText;
  AxisExtent layers = {.size = depth,
                       .field = {.name = side.field.name,
                                 .ranks = Power(side.size, 2),
                                 .text = DepthText}};
  layers.field.value = layers.field.ValueFor(depth);
  return {layers, side, side};
}

// Each layer is a square of four ranks or more.
absl::Status ResolveDepth(ParallelismSpec& parallelism) {
  const std::string path = absl::StrCat("parallelism.", kDepth);
  const int ranks = parallelism.tensor();
  const std::vector<int> fitting = DepthsOf(ranks);
  if (fitting.empty()) {
    constexpr int kLeast = 8;
    int below = std::max(ranks, kLeast);
    int above = below;
    while (DepthsOf(below).empty()) --below;
    while (DepthsOf(above).empty() || above == below) ++above;
    return FieldError(
        "parallelism.tensor",
        absl::StrCat(ranks,
                     " ranks are no layers of as many rows as columns, two or "
                     "more, which tensor_method: 2.5d needs; use ",
                     below,
                     above <= kTensorMax ? absl::StrCat(" or ", above) : ""));
  }
  if (!parallelism.has_tensor_depth()) {
    parallelism.set_tensor_depth(fitting.front());
  }
  const int depth = parallelism.tensor_depth();
  if (std::count(fitting.begin(), fitting.end(), depth) > 0) {
    return absl::OkStatus();
  }
  if (depth == 1 && IsPower(ranks, 2)) {
    return FieldError(path,
                      "one layer is parallelism.tensor_method: 2d; use that, "
                      "and leave this out");
  }
  return FieldError(path,
                    absl::StrCat(depth, " layers of the ", ranks,
                                 " ranks of parallelism.tensor are no squares "
                                 "of 4 or more; use ",
                                 absl::StrJoin(fitting, " or ")));
}

void TryDepths(const ParallelismSpec& parallelism,
               std::vector<ParallelismSpec>& ways) {
  for (const int depth : DepthsOf(parallelism.tensor())) {
    ways.push_back(parallelism);
    ways.back().set_tensor_depth(depth);
  }
}

}  // namespace

LayoutRow Tensor25D() {
  std::vector<RowAxis> axes = AxesOfSquare();
  axes.insert(axes.begin(), {.name = "tensor_depth",
                             .rules = {{.kind = Dim::BATCH,
                                        .field = "training.micro_batch_size",
                                        .loaded = true}},
                             .on_one_host = true});
  return {.field = "tensor",
          .method = "2.5d",
          .fields = {kDepth},
          .axes = axes,
          .sizes = SizesOf,
          .resolve = ResolveDepth,
          .examples = "8, 18 or 32",
          .takes_graphs = false,
          .no_sample =
              "ranks write a text with units that are cut in one "
              "dimension",
          .tries = TryDepths,
          .fewer = AllOrOne};
}

}  // namespace troupe
