// What the vendors' products reach on this machine: the yardstick of our own
// steps.
#ifndef TROUPE_TESTS_BENCH_PRODUCT_RATE_H_
#define TROUPE_TESTS_BENCH_PRODUCT_RATE_H_

#include <string>

#include "ops/device.h"

namespace troupe {

// Of the best of several products of 2048^3 in "f32" or "bf16" (with sums in
// f32), on a number of threads. Where the processor has no instructions for
// bf16, f32's is the yardstick of both.
struct MeasuredRate {
  double flops_per_second = 0;
  std::string precision;  // of the product
};
MeasuredRate ProductRate(const std::string& precision, int threads);

// The same of cuBLASLt on a GPU: the median of several runs of products of
// 8192^3 of random numbers, each run long enough for the clock to settle.
double GpuProductRate(const std::string& precision, Device& device);

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_PRODUCT_RATE_H_
