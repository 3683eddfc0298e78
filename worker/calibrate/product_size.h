// Sizes of the products that a calibration measures.
#ifndef TROUPE_WORKER_CALIBRATE_PRODUCT_SIZE_H_
#define TROUPE_WORKER_CALIBRATE_PRODUCT_SIZE_H_

#include <cstdint>

#include "proto/cluster.pb.h"

namespace troupe {

// A linear layer of a transformer: x [rows, in], y [rows, out].
struct LinearSize {
  int64_t rows, in, out;
};

struct ProductSize {
  int64_t m, n, k;
};

// Of the layer's product forward, and of its gradients of x and of the weights.
inline ProductSize SizeOf(const LinearSize& linear, ProductForm form) {
  const auto& [rows, in, out] = linear;
  if (form == PLAIN) return {.m = rows, .n = out, .k = in};
  if (form == TRANSPOSED) return {.m = rows, .n = in, .k = out};
  return {.m = in, .n = out, .k = rows};
}

inline constexpr ProductForm kProductForms[] = {PLAIN, TRANSPOSED, GRADIENT};

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_PRODUCT_SIZE_H_
