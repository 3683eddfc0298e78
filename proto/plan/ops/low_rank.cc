// LOW_RANK: an adapter (LoRA, arXiv 2106.09685) beside a LINEAR, whose output
// is "base". Of the columns of each B
//
//   y = base + scale dropout(x) A^T B^T
//
// and all other columns of y are those of base. Ranks share it as they share
// the LINEAR. Cut by columns, each has all of A, rows of B, and a summand of
// x's gradient; cut by rows, each has columns of A, all of B, and summands of
// `low` and of y. So both need no exchange of their own: the one that sums what
// the LINEAR makes sums this, too.
//
//   inputs      x       [..., in]
//               base    [..., out]
//   outputs     y       [..., out]
//               low     [..., rank | rank | ...]: scale dropout(x) A^T, a
//                       section for each A
//               masked  [..., in], with a mask: dropout(x)
//   parameters  weights A [rank, in], then weights B [out, rank]
//               (Op.LowRank.columns)
#include <algorithm>

#include "proto/base/gpu_limits.h"
#include "proto/plan/ops/gpu_scratch.h"
#include "proto/plan/ops/kinds.h"
#include "proto/plan/precision.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> LowRankOperands() {
  return {{.name = "x"},
          {.name = "base"},
          {.name = "y", .output = true},
          {.name = "low", .output = true},
          {.name = "masked", .output = true, .optional = true}};
}

namespace {

const Dim& ColumnDim(const TensorSpec& tensor) {
  return tensor.dims(tensor.dims_size() - 1);
}

// A weight of the op, and what it multiplies.
struct Weight {
  WeightProduct product;  // kept [out, in]
  bool trained = false;
};

// All A, and then all B.
std::vector<Weight> WeightsOf(const OpView& op) {
  const TensorSpec& x = op.input("x");
  const Dim& low = ColumnDim(op.output("low"));
  const Dim& y = ColumnDim(op.output("y"));
  const int64_t rows = MultipliedRows(x);
  std::vector<Weight> weights;
  for (const Dim::Section& rank : low.sections()) {
    weights.push_back(
        {.product = {
             .in = ColumnsOf(x), .out = SectionSize(rank), .rows = rows}});
  }
  for (const Op::LowRank::Columns& columns : op.op().low_rank().columns()) {
    int64_t out = 0;
    for (int s = 0; s < columns.sections(); ++s) {
      out += SectionSize(y.sections(columns.section() + s));
    }
    weights.push_back(
        {.product = {.in = SectionSize(low.sections(columns.down())),
                     .out = out,
                     .rows = rows}});
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i].trained = Trains(op.op(), static_cast<int>(i));
  }
  return weights;
}

double FlopsOf(const WeightProduct& product) {
  return 2.0 * static_cast<double>(product.rows) *
         static_cast<double>(product.in) * static_cast<double>(product.out);
}

void AddProducts(const OpView& op, OpRules& rules) {
  double all = 0, trained = 0;
  for (const Weight& weight : WeightsOf(op)) {
    AddWeightProduct(weight.product, weight.trained, rules.products);
    const double flops = FlopsOf(weight.product);
    all += flops;
    if (weight.trained) trained += flops;
  }
  rules.forward.set_matmul_flops(all);
  rules.backward_input.set_matmul_flops(all);
  rules.backward_weight.set_matmul_flops(trained);
}

bool TrainsAmong(const std::vector<Weight>& weights, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (weights[i].trained) return true;
  }
  return false;
}

// Where the columns of a product's y are no whole vectors, the gradient of its
// x is a sum of two parts in f32 (gpu_scratch.h).
int64_t LowRankScratchBytes(const OpView& op) {
  const TensorSpec& x = op.input("x");
  if (x.dtype() == F32) return 0;
  int64_t bytes = 0;
  for (const Weight& weight : WeightsOf(op)) {
    if (weight.product.out % kGpuVectorElements == 0) continue;
    bytes = std::max(bytes, RowsOf(x) * weight.product.in *
                                static_cast<int64_t>(BytesOfElement(F32)));
  }
  return bytes;
}

}  // namespace

OpRules LowRankRules(const OpView& op) {
  const std::vector<Weight> weights = WeightsOf(op);
  const size_t downs = ColumnDim(op.output("low")).sections_size();
  OpRules rules;
  rules.gradients = {{"base", InputGradient::kOfOutput, "y"},
                     {"x", InputGradient::kNew}};
  rules.in_place = {{.output = "y", .input = "base"}};
  rules.own_gradients = {"low"};
  rules.always_written = {"low"};
  const char* const multiplied = op.op().has_mask() ? "masked" : "x";
  if (op.op().has_mask()) rules.always_written.push_back("masked");
  if (TrainsAmong(weights, 0, downs)) {
    rules.backward_weight_reads.push_back(multiplied);
  }
  if (TrainsAmong(weights, downs, weights.size())) {
    rules.backward_weight_reads.push_back("low");
  }
  AddProducts(op, rules);
  // base is read, and y written.
  rules.forward.set_memory_bytes(2 * Bytes(op.output("y")));
  rules.gpu_scratch_bytes = LowRankScratchBytes(op);
  for (const Weight& weight : weights) {
    if (!weight.trained) continue;
    const TensorSpec& x = op.input("x");
    const TensorSpec& y = op.output("y");
    rules.gpu_narrow_gradient_bytes =
        std::max(rules.gpu_narrow_gradient_bytes,
                 GpuNarrowGradientBytes(
                     {.in = weight.product.in,
                      .out = weight.product.out,
                      .rows = RowsOf(x),
                      .row_stride = std::max(RowStrideOf(x), RowStrideOf(y))}));
  }
  return rules;
}

OpCut LowRankCut(const OpView& op, const Wishes& wishes) {
  constexpr AxisCut kWhole;
  constexpr AxisCut kSummand = {.placement = Layout::PARTIAL};
  const AxisCut& x = wishes.tensors[op.Input("x")];
  const AxisCut& y = wishes.tensors[op.Output("y")];
  const TensorCut of_x = {x, x}, of_y = {y, y};
  const bool has_mask = op.HasOutput("masked");
  OpCut cut;
  // Of weights that are not cut each rank has a summand of the gradient.
  cut.sums_parameters = true;
  if (CutsColumns(op.output("y"), y)) {
    const TensorCut read = {kWhole, kSummand};
    cut.inputs = {read, of_y};
    cut.outputs = {of_y, read};
    if (has_mask) cut.outputs.push_back(read);
  } else if (CutsColumns(op.input("x"), x)) {
    const TensorCut summand = {kSummand, kWhole};
    cut.inputs = {of_x, summand};
    cut.outputs = {summand, summand};
    if (has_mask) cut.outputs.push_back(of_x);
  } else {
    cut.inputs = {of_x, of_y};
    cut.outputs = {of_y, of_x};
    if (has_mask) cut.outputs.push_back(of_x);
    cut.sums_parameters = y.placement == Layout::SHARD;
  }
  return cut;
}

}  // namespace troupe
