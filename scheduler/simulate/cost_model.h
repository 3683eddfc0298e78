// How long does an instruction take on a worker? Answered from what the worker
// measured of itself (Calibration), never from the name of its device.
//
//   matrix products   flops over the measured rate of products of that size,
//                     interpolated between measured sizes
//   attention         flops, the masked half included as the calibration counts
//                     it, over the measured rate, forward and backward apart
//   elementwise       bytes over memory bandwidth + elements over their rate
//   optimizer         bytes of parameters, gradients and moments over its rate
//   collective        ring all-reduce over D ranks (Patarasuk and Yuan, 2009):
//                     2 (D-1) latency + 2 (D-1)/D bytes / bandwidth
//   every instruction the overhead of a lane
//
// Ranks of one host share its cores: where their threads exceed the cores, all
// rates shrink by that factor.
#ifndef TROUPE_SCHEDULER_SIMULATE_COST_MODEL_H_
#define TROUPE_SCHEDULER_SIMULATE_COST_MODEL_H_

#include <cstdint>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Seconds of one instruction, by what spends them.
struct Cost {
  double matmul = 0;
  double attention = 0;
  double elementwise = 0;  // norms, activations, loss, copies: memory-bound
  double optimizer = 0;
  double communication = 0;
  double overhead = 0;
  double total() const {
    return matmul + attention + elementwise + optimizer + communication +
           overhead;
  }
};

// Conservative rates of one core of a ten-year-old server, for workers that
// sent no calibration: better a pessimistic prediction than none.
Calibration DefaultCalibration();

// Flops a second of the product [m, k] x [k, n]: linear in the logarithm of the
// product's flops between measured sizes, constant beyond them.
struct MatmulSize {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};
double MatmulFlopsPerSecond(const Calibration& calibration, ElementType dtype,
                            const MatmulSize& size);

// Seconds of the all-reduce of `bytes` over `ranks` ranks.
struct AllReduceSize {
  int64_t bytes = 0;
  int ranks = 1;
};
double AllReduceSeconds(const LinkRate& link, const AllReduceSize& size);
// What each rank sends in it.
int64_t AllReduceBytesSent(const AllReduceSize& size);

class CostModel {
 public:
  // Borrows `plan`. REQUIRES a worker for each rank.
  CostModel(const Plan& plan, const std::vector<WorkerDescription>& workers);

  // For a collective: from when every member has reached it.
  Cost CostOf(int rank, const Instruction& instruction) const;

  // Best measured product rate of all ranks together: what utilisation is
  // measured against.
  double PeakFlopsPerSecond() const;

  // Whether some worker sent no calibration.
  bool uses_default() const { return uses_default_; }

 private:
  struct Rank {
    Calibration calibration;
    double share = 1;  // of its nominal compute rate
    double communication_share = 1;
    std::vector<double> matmul_rate;  // by unit
  };

  double MatmulRateOf(const Unit& unit, const Calibration& calibration) const;
  Cost PassCost(const Rank& rank, int unit, Instruction::Kind kind) const;
  Cost StateCost(const Rank& rank, const Instruction& instruction) const;
  Cost CollectiveCost(const Instruction& instruction) const;

  const Plan& plan_;
  std::vector<Rank> ranks_;
  bool uses_default_ = false;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_COST_MODEL_H_
