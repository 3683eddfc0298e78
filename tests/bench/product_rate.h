// What oneDNN reaches on this machine: the yardstick of our own steps.
#ifndef TROUPE_TESTS_BENCH_PRODUCT_RATE_H_
#define TROUPE_TESTS_BENCH_PRODUCT_RATE_H_

#include <string>

namespace troupe {

// FLOP/s of the best of several products of 2048^3 in "f32" or "bf16" (with
// sums in f32), on so many threads.
double ProductRate(const std::string& precision, int threads);

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_PRODUCT_RATE_H_
