#include "scheduler/simulate/product_rates.h"

#include <algorithm>
#include <functional>

#include "proto/plan/ops/op_view.h"
#include "proto/plan/parameter_of.h"
#include "proto/plan/precision.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/simulate/rates.h"

namespace troupe {
namespace {

// Products of one pass, one after another.
class Pass {
 public:
  explicit Pass(const std::function<double(const MatmulSize&)>& rate)
      : rate_(rate) {}

  void Add(const MatmulSize& size, double times = 1) {
    flops_ += times * MatmulFlops(size);
    seconds_ += times * MatmulFlops(size) / rate_(size);
  }
  double FlopsPerSecond(double without) const {
    return flops_ > 0 ? flops_ / seconds_ : without;
  }

 private:
  const std::function<double(const MatmulSize&)>& rate_;
  double flops_ = 0;
  double seconds_ = 0;
};

// The products of a unit, by pass.
class Products {
 public:
  explicit Products(const std::function<double(const MatmulSize&)>& rate)
      : forward_(rate), backward_input_(rate), backward_weight_(rate) {}

  void Add(const Linear& linear) {
    const auto& [in, out, in_out, rows, is_panel, times] = linear;
    forward_.Add(
        {.m = rows, .n = out, .k = in, .form = in_out ? PLAIN : TRANSPOSED},
        times);
    backward_input_.Add(
        {.m = rows, .n = in, .k = out, .form = in_out ? TRANSPOSED : PLAIN},
        times);
    Pass& weight = is_panel ? backward_input_ : backward_weight_;
    weight.Add({.m = in_out ? in : out,
                .n = in_out ? out : in,
                .k = rows,
                .form = GRADIENT},
               times);
  }

  // Those of queries and keys, or of probabilities and values, head by head.
  void AddOfHeads(const OpView& op) {
    const bool makes_scores = op.op().kind() == Op::SCORES;
    const TensorSpec& of_queries =
        makes_scores ? op.input("q") : op.output("y");
    const Dim::Section& heads = of_queries.dims(2).sections(0);
    const int64_t rows = DimSize(of_queries.dims(1));
    const int64_t keys = DimSize(op.input(makes_scores ? "k" : "v").dims(1));
    const double times =
        static_cast<double>(DimSize(of_queries.dims(0)) * heads.count());
    const MatmulSize scores = {
        .m = rows, .n = keys, .k = heads.width(), .form = TRANSPOSED};
    const MatmulSize weighted = {
        .m = rows, .n = heads.width(), .k = keys, .form = PLAIN};
    forward_.Add(makes_scores ? scores : weighted, times);
    backward_input_.Add(makes_scores ? weighted : scores, times);
    backward_input_.Add(
        {.m = keys, .n = heads.width(), .k = rows, .form = GRADIENT}, times);
  }

  ProductRates Rates(double without) const {
    return {.forward = forward_.FlopsPerSecond(without),
            .backward_input = backward_input_.FlopsPerSecond(without),
            .backward_weight = backward_weight_.FlopsPerSecond(without)};
  }

 private:
  Pass forward_;
  Pass backward_input_;
  Pass backward_weight_;
};

}  // namespace

std::vector<Linear> LinearsOf(const Plan& plan, const Unit& unit) {
  std::vector<Linear> linears;
  if (!unit.has_table()) return linears;
  for (const Op& op : plan.tables(unit.table()).ops()) {
    const bool in_out = op.linear().in_out();
    if (op.kind() == Op::PRODUCT) {
      const OpView panel(plan.tables(unit.table()), op);
      linears.push_back({.in = ColumnsOf(panel.input("x")),
                         .out = ColumnsOf(panel.output("y")),
                         .in_out = in_out,
                         .rows = RowsOf(panel.input("x")),
                         .is_panel = true});
    }
    const bool grouped = op.kind() == Op::GROUPED_LINEAR;
    if (op.kind() != Op::LINEAR && !grouped) continue;
    const TensorSpec& x =
        plan.tables(unit.table()).tensors(op.inputs(0).tensor());
    const int64_t rows =
        x.has_expected_rows() ? x.expected_rows() : RowsOf(x);
    if (rows == 0) continue;
    for (int w = 0; w < WeightCount(op); ++w) {
      const Parameter& weight =
          ParameterOf(plan.units(), unit, op.parameters(w));
      std::vector<int64_t> shape = LocalShape(weight);
      if (grouped) {
        // Each expert has its share of the rows.
        const int64_t experts = shape.front();
        shape.erase(shape.begin());
        linears.push_back({.in = shape[1],
                           .out = shape[0],
                           .rows = std::max<int64_t>(1, rows / experts),
                           .times = static_cast<double>(experts)});
        continue;
      }
      linears.push_back({.in = shape[in_out ? 0 : 1],
                         .out = shape[in_out ? 1 : 0],
                         .in_out = in_out,
                         .rows = rows});
    }
  }
  return linears;
}

std::vector<ProductRates> ProductRatesOf(const Plan& plan,
                                         const Calibration& calibration) {
  const double any = calibration.matmul(0).flops_per_second();
  const ElementType type = ComputeType(plan.job().training());
  const std::function<double(const MatmulSize&)> rate =
      [&](const MatmulSize& size) {
        return MatmulFlopsPerSecond(calibration, type, size);
      };
  std::vector<ProductRates> rates;
  for (int u = 0; u < plan.units_size(); ++u) {
    const Unit& unit = plan.units(u);
    if (u > 0 && unit.kind() == plan.units(u - 1).kind() &&
        unit.table() == plan.units(u - 1).table()) {
      rates.push_back(rates.back());
      continue;
    }
    Products products(rate);
    for (const Linear& linear : LinearsOf(plan, unit)) products.Add(linear);
    if (unit.has_table()) {
      const UnitTable& table = plan.tables(unit.table());
      for (const Op& op : table.ops()) {
        const bool of_heads =
            op.kind() == Op::SCORES || op.kind() == Op::WEIGHTED_VALUES;
        if (of_heads) products.AddOfHeads({table, op});
      }
    }
    rates.push_back(products.Rates(any));
  }
  return rates;
}

}  // namespace troupe
