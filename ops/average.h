// A moving average of weights, beside them (optimizer.ema):
//
//   average = decay average + (1 - decay) weights
//
// Both factors are rounded to f32. So each product is exact in f64, in which it
// is computed, and the result does not depend on how a device adds them: their
// sum is rounded to f64, and that to f32.
#ifndef TROUPE_OPS_AVERAGE_H_
#define TROUPE_OPS_AVERAGE_H_

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
  return {.kept = static_cast<float>(decay),
          .taken = static_cast<float>(1 - decay)};
}

}  // namespace troupe

#endif  // TROUPE_OPS_AVERAGE_H_
