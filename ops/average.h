// A moving average of weights, beside them (optimizer.ema):
//
//   average = decay average + (1 - decay) weights
//
// Both factors are multiples of 2^-24 that add up to 1. So weights that do not
// change are their own average, bit for bit. Each product is exact in f64, in
// which it is computed, and the result does not depend on how a device adds
// them: their sum is rounded to f64, and that to f32.
#ifndef TROUPE_OPS_AVERAGE_H_
#define TROUPE_OPS_AVERAGE_H_

#include <cmath>

#include "ops/tensor.h"

namespace troupe {

class Device;

struct AverageArgs {
  Tensor weights;    // f32 [n], read
  Tensor average;    // f32 [n], updated
  double decay = 0;  // in [0, 1); 0: the average becomes the weights
};

void Average(Device& device, const AverageArgs& args);

// The two factors.
struct AverageFactors {
  float kept = 0;
  float taken = 1;
};
inline AverageFactors FactorsOf(double decay) {
  constexpr double kParts = 1 << 24;
  const double kept = std::round(decay * kParts) / kParts;
  return {.kept = static_cast<float>(kept),
          .taken = static_cast<float>(1 - kept)};
}

}  // namespace troupe

#endif  // TROUPE_OPS_AVERAGE_H_
