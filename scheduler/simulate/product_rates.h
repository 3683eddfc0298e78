// How fast a unit's matrix products (OpRules.products) are in each of its
// passes, from what was measured of products like them.
#ifndef TROUPE_SCHEDULER_SIMULATE_PRODUCT_RATES_H_
#define TROUPE_SCHEDULER_SIMULATE_PRODUCT_RATES_H_

#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

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
