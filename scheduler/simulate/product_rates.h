// How fast a unit's matrix products are in each of its passes, from what was
// measured of products like them. With x the input, W the weight and y the
// output of a linear layer:
//
//                      W kept [in, out]       W kept [out, in]
//   forward            y = x W                y = x W^T
//   backward, input    dx = dy W^T            dx = dy W
//   backward, weight   dW += x^T dy           dW += dy^T x
//
// Attention that has its scores in memory (SCORES, WEIGHTED_VALUES) multiplies
// head by head, and has two products backward, both in the input's pass; so have
// the panels of a product of blocks (PRODUCT).
#ifndef TROUPE_SCHEDULER_SIMULATE_PRODUCT_RATES_H_
#define TROUPE_SCHEDULER_SIMULATE_PRODUCT_RATES_H_

#include <cstdint>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// A linear layer, and how its weight is kept.
struct Linear {
  int64_t in = 0;
  int64_t out = 0;
  bool in_out = false;
  int64_t rows = 0;  // that a pass over one micro-batch multiplies with it
  bool is_panel = false;  // of a product of blocks
  double times = 1;       // as many, each of so many rows: of experts
};
// Those of the unit's products, each weight on its own.
std::vector<Linear> LinearsOf(const Plan& plan, const Unit& unit);

// Flops a second of all products of a pass over one micro-batch together.
struct ProductRates {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
};

// By unit; any rates for one that has no products. REQUIRES a completed
// calibration (rates.h).
std::vector<ProductRates> ProductRatesOf(const Plan& plan,
                                         const Calibration& calibration);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_PRODUCT_RATES_H_
