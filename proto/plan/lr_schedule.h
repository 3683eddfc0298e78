// The learning rate of every step. Arithmetic only: workers step with it, and
// a view of a job can draw the whole curve before it runs.
//
// With s the step (1 is the first), S training.steps, W warmup_steps and K
// decay_steps:
//
//   s <= W    lr s / W                                    (warm-up, all names)
//   constant  lr
//   linear    lr + (min_lr - lr) p,                       p = (s - W) / (S - W)
//   cosine    min_lr + (lr - min_lr) (1 + cos(pi p)) / 2
//   wsd       lr until step S - K, then linear to min_lr over K steps
//
// So every decaying schedule ends at exactly min_lr on step S.
#ifndef TROUPE_PROTO_PLAN_LR_SCHEDULE_H_
#define TROUPE_PROTO_PLAN_LR_SCHEDULE_H_

#include <cstdint>

#include "proto/job.pb.h"

namespace troupe {

// REQUIRES a resolved job (every field set). Steps outside 1..S give the rate
// of the nearest step inside.
double LearningRate(const JobSpec& job, int64_t step);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_LR_SCHEDULE_H_
