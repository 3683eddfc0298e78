#include "scheduler/simulate/product_rates.h"

#include <functional>

#include "proto/plan/ops/op_rules.h"
#include "proto/plan/precision.h"
#include "scheduler/simulate/rates.h"

namespace troupe {
namespace {

ProductForm FormOf(MatrixProduct::Form form) {
  switch (form) {
    case MatrixProduct::kPlain:
      return PLAIN;
    case MatrixProduct::kTransposed:
      return TRANSPOSED;
    case MatrixProduct::kGradient:
      break;
  }
  return GRADIENT;
}

// Products of one pass, one after another.
class Pass {
 public:
  explicit Pass(const std::function<double(const MatmulSize&)>& rate)
      : rate_(rate) {}

  void Add(const std::vector<MatrixProduct>& products) {
    for (const auto& [m, n, k, form, times] : products) {
      const MatmulSize size = {.m = m, .n = n, .k = k, .form = FormOf(form)};
      flops_ += times * MatmulFlops(size);
      seconds_ += times * MatmulFlops(size) / rate_(size);
    }
  }
  double FlopsPerSecond(double without) const {
    return flops_ > 0 ? flops_ / seconds_ : without;
  }

 private:
  const std::function<double(const MatmulSize&)>& rate_;
  double flops_ = 0;
  double seconds_ = 0;
};

ProductRates RatesOf(const UnitTable& table,
                     const std::function<double(const MatmulSize&)>& rate,
                     double without) {
  Pass forward(rate);
  Pass backward_input(rate);
  Pass backward_weight(rate);
  for (const Op& op : table.ops()) {
    const PassProducts products = RulesOf({table, op}).products;
    forward.Add(products.forward);
    backward_input.Add(products.backward_input);
    backward_weight.Add(products.backward_weight);
  }
  return {.forward = forward.FlopsPerSecond(without),
          .backward_input = backward_input.FlopsPerSecond(without),
          .backward_weight = backward_weight.FlopsPerSecond(without)};
}

}  // namespace

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
    rates.push_back(unit.has_table()
                        ? RatesOf(plan.tables(unit.table()), rate, any)
                        : ProductRates{.forward = any,
                                       .backward_input = any,
                                       .backward_weight = any});
  }
  return rates;
}

}  // namespace troupe
