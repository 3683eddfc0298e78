#include "scheduler/simulate/product_rates.h"

#include <functional>

#include "proto/plan/ops/op_view.h"
#include "proto/plan/parameter_of.h"
#include "proto/plan/precision.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/simulate/rates.h"

namespace troupe {
namespace {

ProductRates RatesOf(const std::vector<Linear>& linears,
                     const std::function<double(const MatmulSize&)>& rate) {
  double flops = 0;
  ProductRates seconds;
  const auto seconds_of = [&](const MatmulSize& size) {
    return MatmulFlops(size) / rate(size);
  };
  for (const auto& [in, out, in_out, rows] : linears) {
    flops += MatmulFlops({.m = rows, .n = out, .k = in});
    seconds.forward += seconds_of(
        {.m = rows, .n = out, .k = in, .form = in_out ? PLAIN : TRANSPOSED});
    seconds.backward_input += seconds_of(
        {.m = rows, .n = in, .k = out, .form = in_out ? TRANSPOSED : PLAIN});
    seconds.backward_weight += seconds_of({.m = in_out ? in : out,
                                           .n = in_out ? out : in,
                                           .k = rows,
                                           .form = GRADIENT});
  }
  return {.forward = flops / seconds.forward,
          .backward_input = flops / seconds.backward_input,
          .backward_weight = flops / seconds.backward_weight};
}

}  // namespace

std::vector<Linear> LinearsOf(const Plan& plan, const Unit& unit) {
  std::vector<Linear> linears;
  if (!unit.has_table()) return linears;
  for (const Op& op : plan.tables(unit.table()).ops()) {
    if (op.kind() != Op::LINEAR) continue;
    const bool in_out = op.linear().in_out();
    const int64_t rows =
        RowsOf(plan.tables(unit.table()).tensors(op.inputs(0).tensor()));
    for (int w = 0; w < WeightCount(op); ++w) {
      const Parameter& weight =
          ParameterOf(plan.units(), unit, op.parameters(w));
      const std::vector<int64_t> shape = LocalShape(weight);
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
  const TrainingSpec& training = plan.job().training();
  const double any = calibration.matmul(0).flops_per_second();
  std::vector<ProductRates> rates;
  for (int u = 0; u < plan.units_size(); ++u) {
    const Unit& unit = plan.units(u);
    if (u > 0 && unit.kind() == plan.units(u - 1).kind()) {
      rates.push_back(rates.back());
    } else if (unit.forward().matmul_flops() == 0) {
      rates.push_back({any, any, any});
    } else {
      rates.push_back(
          RatesOf(LinearsOf(plan, unit), [&](const MatmulSize& size) {
            return MatmulFlopsPerSecond(calibration, ComputeType(training),
                                        size);
          }));
    }
  }
  return rates;
}

}  // namespace troupe
