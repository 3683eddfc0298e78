// After REDUCE_SCALARS all ranks hold the sums of a step, and so the loss and
// the gradient norm, to the bit: each collective reduces in a fixed order, and
// what is computed of its result is exact arithmetic. So a rank that reports
// others computes wrongly, or its memory does not keep what is written to it: a
// flipped bit, a bad core, a broken driver. Each step is compared, which costs
// nothing beside the reports.
//
// It finds what is wrong in what all ranks hold. A gradient that one rank
// computes wrongly before it is summed is in the sum of all, and is not found.
#ifndef TROUPE_SCHEDULER_CLUSTER_COMPARE_SCALARS_H_
#define TROUPE_SCHEDULER_CLUSTER_COMPARE_SCALARS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/plan/sums.h"
#include "proto/worker.pb.h"

namespace troupe {

struct ScalarDifference {
  // Those that differ from more than half of all; ascending. Empty: no more
  // than half agree, as of two ranks, and nobody can say which is wrong.
  std::vector<int> wrong;
  int agreed = 0;    // one of the most that agree; the lowest rank
  int others = 0;    // one that differs from it
  std::string what;  // "loss 2.5 where rank 0 has 2.4"; of `others`
};

// Compares by bits, so that NaN is NaN: loss, gradient norm and
// StepReport.sums, which `sums` (ReportedSums of Plan.sums) names, and the
// checksum of what is of single sequences. Some of the `ranks` may not have
// reported. Nothing: all that did agree.
std::optional<ScalarDifference> CompareScalars(
    const std::map<int, StepReport>& reports, int ranks, const Sums& sums);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_COMPARE_SCALARS_H_
