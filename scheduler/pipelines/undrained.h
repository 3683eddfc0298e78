// What the asynchronous schedules have in common: 1F1B that is filled once and
// never drains. In each optimizer step rank r of P runs, for each micro-batch
// j, the forward of the micro-batch that comes P - 1 - r after j, which may
// belong to a later step (`ahead`), and then the backward of j. Which weights
// they use (`weight_version`) is left to the schedule.
//
// There is no bubble: M micro-batches that take F forward and B backward take
// M (F + B). Rank r keeps the activations of P - r micro-batches.
#ifndef TROUPE_SCHEDULER_PIPELINES_UNDRAINED_H_
#define TROUPE_SCHEDULER_PIPELINES_UNDRAINED_H_

#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// REQUIRES one stage a rank.
ComputeOrder UndrainedOrder(const PipelineShape& shape);

// How far ahead of its optimizer step a rank runs the forward of a micro-batch
// in that order.
struct MicroBatchOnRank {
  int rank = 0;
  int micro_batch = 0;
};
int UndrainedAhead(const PipelineShape& shape, const MicroBatchOnRank& where);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_UNDRAINED_H_
