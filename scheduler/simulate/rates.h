// Rates from a calibration: how fast a worker multiplies matrices of some size,
// how long a ring takes over a link. The cost model prices instructions with
// them.
#ifndef TROUPE_SCHEDULER_SIMULATE_RATES_H_
#define TROUPE_SCHEDULER_SIMULATE_RATES_H_

#include <cstdint>

#include "proto/cluster.pb.h"

namespace troupe {

// Conservative rates of one core of a ten-year-old server, for workers that
// sent no calibration: better a pessimistic prediction than none.
Calibration DefaultCalibration();

// The calibration, with what it lacks taken from the default.
Calibration CompletedCalibration(const Calibration& measured);

// Flops a second of the product [m, k] x [k, n]: linear in the logarithm of the
// product's flops between measured sizes, constant beyond them.
struct MatmulSize {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};
double MatmulFlopsPerSecond(const Calibration& calibration, ElementType dtype,
                            const MatmulSize& size);

// Flops of one product.
double MatmulFlops(const MatmulSize& size);

// Seconds of the ring all-reduce of `bytes` over `ranks` ranks (Patarasuk and
// Yuan, 2009): 2 (D-1) latency + 2 (D-1)/D bytes / bandwidth. One rank:
// nothing.
struct AllReduceSize {
  int64_t bytes = 0;
  int ranks = 1;
};
double AllReduceSeconds(const LinkRate& link, const AllReduceSize& size);
// What each rank sends in it.
int64_t AllReduceBytesSent(const AllReduceSize& size);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_RATES_H_
