// In which ways a number of ranks of a stage could share it: as replicas, by
// each row of scheduler/layouts that says what to try, and by products of
// these. A new row is in this list without a line here.
#ifndef TROUPE_SCHEDULER_PLANNER_SHARES_H_
#define TROUPE_SCHEDULER_PLANNER_SHARES_H_

#include <vector>

#include "proto/job.pb.h"

namespace troupe {

// Each with nothing but `data`, the fields by which ranks share units, and
// those of data (parallelism.expert) where the model has what they share. Most
// replicas first. Not all of them can be planned: heads, or a batch, may not
// divide.
std::vector<ParallelismSpec> SharesOf(int ranks, const ModelSpec& model);

// `shares`, where one row shares units by them and says by which other fields
// some may be shared beside it (LayoutRow.tried_beside): with each of `parts`,
// which name units and nothing more, shared by each of these.
std::vector<ParallelismSpec> SharesWithParts(
    const ParallelismSpec& shares, const std::vector<StrategySpec>& parts);

// Whether ranks that share samples have as many each, in each strategy.
bool DividesSamples(const ParallelismSpec& shares, int micro_batch_size);

// Of those with a row that is tried last (LayoutRow.tried_last), true; and the
// number of fields in use, `data` among them.
struct ShareComplexity {
  bool last = false;
  int fields = 0;
  auto operator<=>(const ShareComplexity&) const = default;
};
ShareComplexity ComplexityOf(const ParallelismSpec& shares);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_SHARES_H_
