// Rates from a calibration: how fast a worker multiplies matrices of some size.
// The cost model prices instructions with them.
#ifndef TROUPE_SCHEDULER_SIMULATE_RATES_H_
#define TROUPE_SCHEDULER_SIMULATE_RATES_H_

#include <cstdint>

#include "proto/cluster.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// Conservative rates of one core of a ten-year-old server, for workers that
// sent no calibration: better a pessimistic prediction than none.
Calibration DefaultCalibration();

// The calibration, with what it lacks taken from the default.
Calibration CompletedCalibration(const Calibration& measured);

// A rate at a size that nobody measured is the mean of the measured ones,
// weighted by 1/d^4, d being the distance between the logarithms of the sizes
// (Shepard, 1968): exact where it was measured, the nearest ones' elsewhere.

// The product [m, k] x [k, n], after transposition.
struct MatmulSize {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  ProductForm form = PLAIN;
};
// Flops a second, from the measured products of the same dtype and form; of any
// form where none of that one was measured.
double MatmulFlopsPerSecond(const Calibration& calibration, ElementType dtype,
                            const MatmulSize& size);

// Flops of one product.
double MatmulFlops(const MatmulSize& size);

// Causal attention over `length` rows. Flops a second, the masked half counted.
struct AttentionSize {
  int64_t length = 0;
  int64_t head_dim = 0;
};
struct AttentionFlopsPerSecond {
  double forward = 0;
  double backward = 0;
};
AttentionFlopsPerSecond AttentionRateOf(const Calibration& calibration,
                                        ElementType dtype,
                                        const AttentionSize& size);

// What a collective moves.
struct CollectiveSize {
  int64_t bytes = 0;  // of the whole
  int ranks = 1;
  Collective collective = ALL_REDUCE;
};
// What each rank sends in it; where that is not the same, in the mean of calls
// that have each rank as root once.
int64_t CollectiveBytesSent(const CollectiveSize& size);

// Seconds of moving `bytes` from one rank to another.
double TransferSeconds(const LinkRate& link, int64_t bytes);

// The slower of the two in either respect.
LinkRate Slower(const LinkRate& a, const LinkRate& b);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_RATES_H_
